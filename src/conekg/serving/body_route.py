"""Routes whose one argument is a JSON body, parsed directly into its pydantic model.

FastAPI's own handling parses JSON into Python objects, those into the model, and looks for
dependencies and files; for `/api/ask` that took a third of the event loop's time. Bodies that
cannot be parsed are refused with the place of the fault, in the same shape as FastAPI's.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails


class BodyRoute(APIRoute):
    """A route to `async def endpoint(request: Model) -> Response`.

    It appears in the OpenAPI description like any other route.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function that turns a request into a response."""
        endpoint: Callable[[BaseModel], Awaitable[Response]] = self.endpoint
        model: type[BaseModel] = get_type_hints(self.endpoint)["request"]

        async def handle(request: Request) -> Response:
            refuse_parameters(request)
            kind = request.headers.get("content-type", "")
            if not is_json(kind):
                sent = f"as {kind!r}" if kind else "without a content type"
                raise _invalid(f"the body was sent {sent}; send it as 'application/json'")
            text = await request.body()
            try:
                body = model.model_validate_json(text)
            except ValidationError as error:
                details = error.errors(include_url=False, include_context=False)
                raise RequestValidationError([_of_body(detail) for detail in details]) from None
            refuse_repeated_fields(text)
            return await endpoint(body)

        return handle


def refuse_parameters(request: Request) -> None:
    """Raise RequestValidationError if the address has parameters, as in `/api/ask?top_k=3`.

    They would be ignored otherwise: the options of such a route belong in the body.
    """
    if not request.scope["query_string"]:
        return  # the usual case; `query_params` below takes as long as validating a body
    for name in request.query_params:
        raise RequestValidationError(
            [{"type": "extra_forbidden", "loc": ("query", name), "msg": "no such parameter here"}]
        )


def refuse_repeated(request: Request) -> None:
    """Raise RequestValidationError if a parameter is given twice, as in `?prefix=a&prefix=b`.

    Only the last one would be used otherwise.
    """
    name = _repeated(name for name, _ in request.query_params.multi_items())
    if name is not None:
        raise _given_twice("query", name)


def refuse_repeated_fields(body: bytes) -> None:
    """Raise RequestValidationError if an object of a JSON text has a field twice.

    Only the last one would be used otherwise.
    """

    def check(pairs: list[tuple[str, object]]) -> None:
        name = _repeated(name for name, _ in pairs)
        if name is not None:
            raise _given_twice("body", name)

    json.loads(body, object_pairs_hook=check)


def _repeated(names: Iterable[str]) -> str | None:
    """The first name that occurs a second time; None if all are different."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def is_json(content_type: str) -> bool:
    """Whether a media type is JSON.

    >>> is_json("application/json; charset=utf-8"), is_json("text/plain")
    (True, False)
    """
    kind, _, rest = content_type.partition(";")[0].strip().lower().partition("/")
    return kind == "application" and (rest == "json" or rest.endswith("+json"))


def _of_body(detail: ErrorDetails) -> dict[str, Any]:
    """A fault of a body in FastAPI's form; of a body that is not JSON, without its text."""
    fault = {**detail, "loc": ("body", *detail["loc"])}
    if detail["type"] == "json_invalid":
        del fault["input"]
    return fault


def _given_twice(place: str, name: str) -> RequestValidationError:
    return RequestValidationError(
        [{"type": "repeated", "loc": (place, name), "msg": "given more than once"}]
    )


def _invalid(message: str) -> RequestValidationError:
    return RequestValidationError([{"type": "json_invalid", "loc": ("body",), "msg": message}])
