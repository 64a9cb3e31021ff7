"""The answering side of short questions: bounded bodies in, messages or refusals out."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from axonp2p.errors import (
    AxonError,
    Busy,
    JobFailed,
    LogDamaged,
    MalformedMessage,
    MessageTooLarge,
    NotFound,
    PeerMisbehaved,
    Refused,
    StaleRow,
    TooOften,
    Unreachable,
)
from axonp2p.logs import get_logger
from axonp2p.transport.http.http_caller import CONTENT_TYPE, PING_PATH
from axonp2p.transport.messages import Refusal, refusal_of
from axonp2p.wire.codec import Message, decode_as, encode

log = get_logger(__name__)

T = TypeVar("T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SERVER = "axon"
"""The name of the program in answers: not which version of which library reads what strangers send."""

BODY_WITHIN_S = 10.0
"""How long a caller may take to send a body, in seconds."""

REFUSED_AFTER_S = 0.5
"""A caller that asks too often hears so only then, in seconds: a refusal costs us as much as many an answer."""

ANSWERED = web.RequestKey("answered", web.StreamResponse)
"""The response of a request that became a session: there is no other to give any more."""

# The first row that fits wins. An error that is not in the table is ours alone, and the caller learns nothing of it.
_STATUSES: tuple[tuple[type[AxonError], int], ...] = (
    (MessageTooLarge, 413),
    (MalformedMessage, 400),
    (PeerMisbehaved, 403),
    (StaleRow, 409),
    (TooOften, 429),
    (Busy, 503),
    (Refused, 403),
    (NotFound, 404),
    (Unreachable, 502),
    (JobFailed, 500),
    (LogDamaged, 500),
)

_INTERNAL = refusal_of(AxonError("a mistake of ours"))


async def read_message(request: web.Request, kind: type[T], limit: int) -> T:
    """The message in the body of a POST. Raises `MalformedMessage`, and what `read_body` raises."""
    return decode_as(await read_body(request, limit), kind, limit)


async def read_body(request: web.Request, limit: int) -> bytes:
    """The body of a POST, which may have at most `limit` bytes.

    Raises `MessageTooLarge`, `MalformedMessage`, `Refused` when the body takes more than ten seconds, or `Unreachable`
    when the caller is gone before all of it came.
    """
    if request.content.is_eof():  # all of it came with its head, as a rule: a timer would cost more than reading it
        return await _body(request, limit)
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            return await _body(request, limit)
    except TimeoutError as error:
        raise Refused(f"the body did not come within {BODY_WITHIN_S:.0f} s") from error


async def _body(request: web.Request, limit: int) -> bytes:
    if (request.content_length or 0) > limit:
        raise MessageTooLarge(f"a body of {request.content_length} bytes; at most {limit}")
    body = bytearray()
    try:
        if request.content.is_eof():
            body += request.content.read_nowait()
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > limit:
                raise MessageTooLarge(f"a body of more than {limit} bytes")
    except (web.RequestPayloadError, HttpProcessingError) as error:
        raise MalformedMessage("a body that is not sent as HTTP has it") from error
    except OSError as error:
        raise Unreachable("the caller was lost before its body had come") from error
    return bytes(body)


def reply(message: Message, status: int = 200) -> web.Response:
    """`message` as the answer."""
    return web.Response(body=encode(message), status=status, content_type=CONTENT_TYPE)


@web.middleware
async def errors_as_refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers every error with a `Refusal` and a status that fits, and tells strangers nothing else of ours."""
    try:
        return await handler(request)
    except AxonError as error:
        if ANSWERED in request:
            return request[ANSWERED]
        if isinstance(error, TooOften):
            await asyncio.sleep(REFUSED_AFTER_S)
        return _refuse(request, error)
    except web.HTTPException as error:
        reason = f"{request.method} {request.path[:100]}: {error.reason.lower()}"
        refused = NotFound(reason) if error.status == 404 else Refused(reason)
        return _refusal(request, refusal_of(refused), error.status)
    except Exception:
        log.exception("a request failed", path=request.path[:100])
        return _refusal(request, _INTERNAL, 500)


CODE = web.ResponseKey("code", str)
"""On an answer that refuses: the code of docs/errors.md."""


def _refusal(request: web.Request, refusal: Refusal, status: int) -> web.Response:
    """For programs as a message; for a browser, which would save that as a file, as words."""
    if "text/html" in request.headers.get("Accept", ""):
        text = "\n".join(filter(None, (f"{refusal.code}: {refusal.message}", refusal.cause, refusal.fix)))
        answer = web.Response(text=f"{text}\n", status=status, headers={"X-Content-Type-Options": "nosniff"})
    else:
        answer = reply(refusal, status)
    answer[CODE] = refusal.code
    return answer


def _refuse(request: web.Request, error: AxonError) -> web.Response:
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            answer = _refusal(request, refusal_of(error), status)
            if isinstance(error, LogDamaged):
                log.error("the log is damaged", path=request.path[:100], message=error.message)
            if isinstance(error, Busy):
                answer.headers["Retry-After"] = str(math.ceil(error.wait_s))
            return answer
    log.error("a request failed", path=request.path[:100], message=error.message, cause=error.cause)
    return _refusal(request, _INTERNAL, 500)


async def name_server(request: web.Request, response: web.StreamResponse) -> None:
    """For `on_response_prepare`."""
    response.headers["Server"] = SERVER


def add_ping(app: web.Application) -> None:
    """GET /v1/ping: the shortest answer there is, to measure round trips with."""

    async def ping(request: web.Request) -> web.Response:
        return web.Response(status=204)

    app.router.add_get(PING_PATH, ping)
