"""The services of both the control socket and the status page: status, history, events, and the owner's orders."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

import msgspec
from aiohttp import web
from aiohttp_sse import EventSourceResponse

from axonp2p.errors import Busy, MalformedMessage
from axonp2p.logs import get_logger
from peer_daemon.control.json_door import Handler, errors_as_json, json_reply, read_json
from peer_daemon.control.status import HistoryTold, LimitsAsked, PauseAsked, Status


class Steering(Protocol):
    """All of these answer an owner, so they may raise any `AxonError`: its cause and fix are told."""

    def status(self) -> Status:
        """As it is now; cheap, for it is asked every second."""
        ...

    async def pause(self, seconds: float | None) -> None:
        """Stop working for so long, or until `resume`; running jobs are handed back."""
        ...

    async def finish(self) -> None:
        """End the running rounds, then pause until `resume`."""
        ...

    async def resume(self) -> None:
        """Work again."""
        ...

    async def change_limits(self, asked: LimitsAsked) -> None:
        """Hold to these from now on, and after a restart."""
        ...

    async def history(self, since: float) -> HistoryTold:
        """The history since then, Unix seconds, as far as it was kept."""
        ...

    async def changed(self, after: int) -> int:
        """Wait until the number of changes of the status is more than `after`, and give it. It is never negative."""
        ...


log = get_logger(__name__)

HEARTBEAT_S = 15.0
"""How often a stream without news says that it lives; a reader that is gone is noticed then."""
READ_WITHIN_S = 30.0
"""A reader of events that takes nothing for so long is let go."""
AT_MOST_EVERY_S = 1.0
"""Between two events of one stream."""
MOST_STREAMS = 32
"""Readers of events at a time."""


def add_api(app: web.Application, steering: Steering, under: str = "") -> None:
    """Serve everything below the path `under`, with errors as JSON whatever else `app` does with them."""
    answers = _Answers(steering)
    router = app.router
    router.add_get(f"{under}/status", _guarded(answers.status))
    router.add_get(f"{under}/history", _guarded(answers.history))
    router.add_get(f"{under}/events", _guarded(answers.events), allow_head=False)
    router.add_post(f"{under}/pause", _guarded(answers.pause))
    router.add_post(f"{under}/finish", _guarded(answers.finish))
    router.add_post(f"{under}/resume", _guarded(answers.resume))
    router.add_post(f"{under}/limits", _guarded(answers.limits))
    app.on_shutdown.append(answers.end_streams)


def _guarded(handler: Handler) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        answer: web.StreamResponse = await errors_as_json(request, handler)
        return answer

    return handle


class _Answers:
    def __init__(self, steering: Steering) -> None:
        self._steering = steering
        self._streams: set[EventSourceResponse] = set()

    async def status(self, request: web.Request) -> web.Response:
        return json_reply(self._steering.status())

    async def history(self, request: web.Request) -> web.Response:
        return json_reply(await self._steering.history(_since(request.query.get("since", "0"))))

    async def pause(self, request: web.Request) -> web.Response:
        asked = await read_json(request, PauseAsked)
        return await self._done(self._steering.pause(asked.seconds))

    async def finish(self, request: web.Request) -> web.Response:
        return await self._done(self._steering.finish())

    async def resume(self, request: web.Request) -> web.Response:
        return await self._done(self._steering.resume())

    async def limits(self, request: web.Request) -> web.Response:
        asked = await read_json(request, LimitsAsked)
        return await self._done(self._steering.change_limits(asked))

    async def events(self, request: web.Request) -> web.StreamResponse:
        if len(self._streams) >= MOST_STREAMS:
            raise Busy(f"{MOST_STREAMS} readers follow this peer already", fix="close one of its status pages")
        stream = EventSourceResponse(ping_interval=HEARTBEAT_S, send_timeout=READ_WITHIN_S)
        self._streams.add(stream)
        try:
            # A reader that went away, or takes nothing, ends its own stream and nothing else.
            with suppress(ConnectionError, TimeoutError):
                await stream.prepare(request)
                async with stream:
                    await self._tell(stream)
        except Exception:  # the edge of a task; what is half told can only be broken off
            if not stream.prepared:
                raise
            log.exception("a stream of events broke off")
        finally:
            self._streams.discard(stream)
        return stream

    async def end_streams(self, app: web.Application) -> None:
        """End every stream: the door closes."""
        for stream in self._streams:
            if stream.prepared:
                stream.stop_streaming()

    async def _tell(self, stream: EventSourceResponse) -> None:
        """Send the status at each change. It is made when it is sent: nothing is kept for a slow reader."""
        ended = asyncio.create_task(stream.wait())
        try:
            seen = await self._steering.changed(-1)
            while not ended.done():
                await stream.send(msgspec.json.encode(self._steering.status()).decode(), event="status")
                await asyncio.wait({ended}, timeout=AT_MOST_EVERY_S)
                change = asyncio.create_task(_number(self._steering.changed, seen))
                await asyncio.wait({ended, change}, return_when=asyncio.FIRST_COMPLETED)
                if not change.done():
                    change.cancel()
                    return
                seen = change.result()
        finally:
            ended.cancel()

    async def _done(self, order: Awaitable[None]) -> web.Response:
        await order
        return json_reply(self._steering.status())


async def _number(changed: Callable[[int], Awaitable[int]], after: int) -> int:
    return await changed(after)


def _since(text: str) -> float:
    try:
        since = float(text)
    except ValueError:
        since = math.nan
    if not (math.isfinite(since) and since >= 0):
        raise MalformedMessage(f"since={text[:40]}: Unix seconds are expected", fix="/history?since=1800000000")
    return since
