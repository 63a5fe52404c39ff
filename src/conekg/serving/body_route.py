"""Routes whose one argument is a JSON body, read straight into its model.

The framework reads any kind of argument of any kind of route: it parses JSON into
Python's objects and those into a model, and looks for dependencies and files on the way.
For the route that most requests take, that is a third of what the event loop does.
Bodies that cannot be read are refused with the place where reading them failed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError


class BodyRoute(APIRoute):
    """A route to `async def endpoint(request: Model) -> Response`.

    Described and routed as any other, and bad bodies are refused in the same shape.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What turns a request into a response."""
        endpoint: Callable[[BaseModel], Awaitable[Response]] = self.endpoint
        model: type[BaseModel] = get_type_hints(self.endpoint)["request"]

        async def handle(request: Request) -> Response:
            refuse_parameters(request)
            if not is_json(request.headers.get("content-type", "")):
                raise _invalid("the body must be sent as application/json")
            try:
                body = model.model_validate_json(await request.body())
            except ValidationError as error:
                details = error.errors(
                    include_url=False, include_context=False, include_input=False
                )
                raise RequestValidationError(
                    [{**detail, "loc": ("body", *detail["loc"])} for detail in details]
                ) from None
            return await endpoint(body)

        return handle


def refuse_parameters(request: Request) -> None:
    """Fail where a route that takes no parameters is sent some, as in `/api/ask?top_k=3`.

    They would be ignored: options belong in the body.
    """
    for name in request.query_params:
        raise RequestValidationError(
            [{"type": "extra_forbidden", "loc": ("query", name), "msg": "no such parameter here"}]
        )


def refuse_repeated(request: Request) -> None:
    """Fail where a parameter is given twice, as in `/api/entities?prefix=a&prefix=b`.

    Only the last would be used.
    """
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if names.count(name) > 1:
            raise RequestValidationError(
                [{"type": "repeated", "loc": ("query", name), "msg": "given more than once"}]
            )


def is_json(content_type: str) -> bool:
    """Whether a media type is JSON.

    >>> is_json("application/json; charset=utf-8"), is_json("text/plain")
    (True, False)
    """
    kind, _, rest = content_type.partition(";")[0].strip().lower().partition("/")
    return kind == "application" and (rest == "json" or rest.endswith("+json"))


def _invalid(message: str) -> RequestValidationError:
    return RequestValidationError([{"type": "json_invalid", "loc": ("body",), "msg": message}])
