"""Errors as HTTP responses: one table from error class to status, and one JSON shape for all.

Failures that a client cannot cause (a damaged store, a missing checkpoint) may name files of this
machine. Their messages go to the log, and the client gets a fixed sentence.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi.responses import JSONResponse

from conekg.errors import (
    CheckpointError,
    ConeKGError,
    ConfigError,
    DataError,
    DownloadError,
    QueryError,
    QuerySyntaxError,
    QueryTooLargeError,
    StoreError,
    TrainingDivergedError,
    UnknownNameError,
    UnsupportedOperatorError,
)
from conekg.serving.schemas import ErrorBody, ErrorResponse

log = logging.getLogger(__name__)


class ServerBusyError(ConeKGError):
    """More requests at once than the server takes; the client may try again soon."""


class ServerStoppingError(ConeKGError):
    """The server is shutting down and takes no new request."""


class RequestTimeoutError(ConeKGError):
    """A request that was not answered within the time limit."""


class SlowRequestError(ConeKGError):
    """A request that did not arrive within the time limit."""


class BodyTooLargeError(ConeKGError):
    """A request body larger than the limit."""


class EncodedBodyError(ConeKGError):
    """A request body that is compressed or otherwise encoded."""


class HeadTooLargeError(ConeKGError):
    """A request whose first line and headers are larger than the limit."""


class ClientGoneError(ConeKGError):
    """A client that hung up before its request was answered; only metrics show it."""


class MissingKeyError(ConeKGError):
    """A request without the API key that the server was started with."""


class HostNotAllowedError(ConeKGError):
    """A request for a host name that the server does not answer to."""


STATUS: dict[type[ConeKGError], int] = {
    ConeKGError: 400,
    QuerySyntaxError: 400,
    MissingKeyError: 401,
    UnknownNameError: 404,
    SlowRequestError: 408,
    BodyTooLargeError: 413,
    QueryTooLargeError: 413,
    EncodedBodyError: 415,
    HostNotAllowedError: 421,
    ConfigError: 422,
    QueryError: 422,
    UnsupportedOperatorError: 422,
    HeadTooLargeError: 431,
    ClientGoneError: 499,  # as nginx counts such requests; HTTP itself has no status for them
    CheckpointError: 500,
    DataError: 500,
    DownloadError: 500,
    StoreError: 500,
    TrainingDivergedError: 500,
    ServerBusyError: 503,
    ServerStoppingError: 503,
    RequestTimeoutError: 504,
}
"""The HTTP status of every error class; a class not listed has that of its nearest ancestor."""

INTERNAL_MESSAGE = "the server failed on this request; its log says why"


def status_of(error: ConeKGError) -> int:
    """The HTTP status of an error."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def kind_of(error: ConeKGError) -> str:
    """The machine-readable name of an error's class.

    >>> kind_of(QueryTooLargeError("..."))
    'query_too_large'
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__.removesuffix("Error"))
    return words.lower().replace("cone_kg", "request")


def describe(error: ConeKGError) -> ErrorBody:
    """The error body for an error; the message of a 500 goes to the log instead."""
    status, kind = status_of(error), kind_of(error)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("request failed: %s", error)
        return ErrorBody(status=status, kind=kind, message=INTERNAL_MESSAGE)
    # The other lines mark the offending text for a terminal; here `span` says where it is.
    message = error.message.split("\n", 1)[0]
    span: tuple[int, int] | None = getattr(error, "span", None)
    return ErrorBody(
        status=status,
        kind=kind,
        message=message,
        hint=_hint_of(error),
        name=getattr(error, "name", None),
        span=span,
        suggestions=list(getattr(error, "suggestions", ())),
        about=list(getattr(error, "about", ())),
    )


_WHERE_TO_LOOK = {
    "entity": "GET /api/entities?prefix=... completes names",
    "relation": "GET /api/relations lists all",
}


def _hint_of(error: ConeKGError) -> str | None:
    """What to do next; instead of a `conekg` command, the route that does the same."""
    if isinstance(error, UnknownNameError) and error.where_to_look is not None:
        hint = " ".join(part for part in (error.guess, error.extra_hint) if part)
        return hint or _WHERE_TO_LOOK.get(error.kind)
    return error.hint


def describe_invalid(details: Sequence[Any]) -> ErrorBody:
    """The error body for a request that does not match its schema; at most five problems."""
    problems = [
        f"{'.'.join(map(str, detail['loc']))}: {_fault_of(detail)}{_value_of(detail)}"
        for detail in list(details)[:5]
    ]
    return ErrorBody(
        status=422,
        kind="invalid_request",
        message="; ".join(problems) or "the request does not fit its schema",
        hint="GET /openapi.json describes every request",
    )


def _fault_of(detail: Mapping[str, Any]) -> str:
    """What is wrong with a field or parameter; an unknown one in clearer words than pydantic's."""
    if detail.get("type") == "extra_forbidden":
        return f"no such {'parameter' if detail['loc'][0] == 'query' else 'field'} here"
    return str(detail["msg"])


def _value_of(detail: Mapping[str, Any]) -> str:
    """The wrong value for the message, such as `, not 0`; empty for a long or a missing value."""
    value = detail.get("input")
    if not isinstance(value, str | int | float) or detail["type"] in _FAULTS_WITHOUT_VALUE:
        return ""
    written = json.dumps(value, ensure_ascii=False)
    return f", not {written}" if len(written) <= _MAX_SHOWN_CHARS else ""


_FAULTS_WITHOUT_VALUE = {"extra_forbidden", "json_invalid", "missing"}
_MAX_SHOWN_CHARS = 60


def describe_status(status: int, method: str, path: str) -> ErrorBody:
    """The error body where only a status is known, such as 404 for a missing route."""
    phrase = HTTPStatus(status).phrase
    messages = {
        HTTPStatus.NOT_FOUND: f"there is nothing at {path!r}",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{path!r} does not support {method}",
    }
    return ErrorBody(
        status=status,
        kind=phrase.lower().replace(" ", "_"),
        message=messages.get(HTTPStatus(status), phrase),
        hint="GET /openapi.json describes every route"
        + ("; none ends in a slash" if path.endswith("/") and path != "/" else ""),
    )


def describe_range(status: int, given: str, path: str) -> ErrorBody:
    """The error body for a Range header that is malformed or beyond the end of the file."""
    beyond = status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
    fault = f"lies beyond the end of {path!r}" if beyond else "is not valid"
    return ErrorBody(
        status=status,
        kind="range_not_satisfiable" if beyond else "bad_request",
        message=f"the Range header {given!r} {fault}",
        hint="leave it out, or ask for bytes that are there, such as `Range: bytes=0-99`",
    )


def error_response(body: ErrorBody, retry_after_s: int) -> JSONResponse:
    """An error as an HTTP response."""
    headers = {}
    if body.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(retry_after_s)
    if body.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if body.status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
        headers["Accept-Encoding"] = "identity"
    return JSONResponse(
        ErrorResponse(error=body).model_dump(), status_code=body.status, headers=headers
    )
