"""JSON for the owner: bounded bodies in, values or errors out, errors in the same shape as on the command line."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from axonp2p.console import error_json
from axonp2p.errors import (
    AxonError,
    Busy,
    MalformedMessage,
    MessageTooLarge,
    NotFound,
    Refused,
    SettingsError,
    Unreachable,
)
from axonp2p.logs import get_logger
from axonp2p.transport.http.http_replies import read_body
from axonp2p.wire.json_form import decode_json

log = get_logger(__name__)

T = TypeVar("T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

BODY_LIMIT = 16 * 1024
"""Bytes that a caller may send with one question."""

# The first row that fits wins.
_STATUSES: tuple[tuple[type[AxonError], int], ...] = (
    (MessageTooLarge, 413),
    (MalformedMessage, 400),
    (NotFound, 404),
    (SettingsError, 422),
    (Busy, 503),
    (Refused, 403),
    (Unreachable, 502),
)


async def read_json(request: web.Request, kind: type[T]) -> T:
    """The body as a `kind`; no body is an empty object. Raises `MalformedMessage`, and what `read_body` raises."""
    try:
        return decode_json(await read_body(request, BODY_LIMIT) or b"{}", kind)
    except msgspec.DecodeError as error:
        raise MalformedMessage("the body is not what this address takes", cause=str(error)) from error


def json_reply(value: Any) -> web.Response:
    """`value` as the answer."""
    return _reply(msgspec.json.encode(value), 200)


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers every error with its code, message, cause and fix, and with a status that fits."""
    try:
        return await handler(request)
    except AxonError as error:
        return _error_reply(error)
    except web.HTTPException as error:
        what = f"{request.method} {request.path[:100]}: {error.reason.lower()}"
        told = NotFound(what) if error.status == 404 else MalformedMessage(what)
        reply = _reply(error_json(told).encode(), error.status)
        if "Allow" in error.headers:
            reply.headers["Allow"] = error.headers["Allow"]
        return reply
    except Exception as error:  # the edge of a task: one question fails, the daemon goes on
        log.exception("a question of the owner failed", path=request.path[:100])
        return _error_reply(AxonError(f"axon made a mistake: {type(error).__name__}", fix="read the log of the daemon"))


def _error_reply(error: AxonError) -> web.Response:
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    reply = _reply(error_json(error).encode(), status)
    if isinstance(error, Busy):
        reply.headers["Retry-After"] = str(math.ceil(error.wait_s))
    return reply


def _reply(body: bytes, status: int) -> web.Response:
    return web.Response(
        body=body, status=status, content_type="application/json", headers={"Cache-Control": "no-store"}
    )
