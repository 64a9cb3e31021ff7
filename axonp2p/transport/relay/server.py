"""The relay: registers peers over their sessions, takes CONNECT from callers, and joins the two (a door).

Its traffic is decided in `admission`. The code that serves HTTP adds `connects` to the application's middlewares,
`add_routes` to its addresses, and hands sessions whose first message is `RegisterAtRelay` to `serve`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Handler

from axonp2p.clock import Clock
from axonp2p.errors import MalformedMessage, NotAtRelay, NotFound, QuotaUsed, Refused
from axonp2p.identity.peer_id import PeerId, public_key_of, short
from axonp2p.logs import get_logger
from axonp2p.transport.address import plain_address, source_of
from axonp2p.transport.relay.admission import Admission, Stream
from axonp2p.transport.relay.splice import End, join, take_over, until_gone
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.tunnel.messages import (
    FromRegistered,
    OpenStream,
    RelayLimits,
    RelayTerms,
    StreamReady,
    StreamRefused,
)

log = get_logger(__name__)

RELAYED_PATH = "/v1/relayed"
CALLBACK_S = 8.0
"""How long a peer may take to open the connection for a stream."""
LOOK_EVERY_S = 1.0
"""How often it is looked which streams are over."""

_CONNECTED = b"HTTP/1.1 200 Connected\r\n\r\n"
_SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\n"


@dataclass(eq=False)
class _Waiting:
    """A stream whose peer was asked to come."""

    stream: Stream
    came: asyncio.Future[End] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    ready: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, said: StreamReady | StreamRefused) -> None:
        """Of the peer."""
        if isinstance(said, StreamReady):
            self.ready.set()
        elif not self.came.done():
            self.came.set_exception(NotAtRelay(f"peer {short(self.stream.peer)}: {said.reason}"))

    def give_up(self) -> None:
        """Nobody wants its connection any more, should it have come."""
        if not self.came.cancel() and self.came.exception() is None:
            self.came.result().abort()


class RelayServer:
    """One relay. `run` is a supervised task; `stop` ends every stream."""

    def __init__(self, limits: RelayLimits, clock: Clock, is_known: Callable[[PeerId], bool] = lambda _: False) -> None:
        self.admission = Admission(limits, is_known)
        self._clock = clock
        self._registered: dict[PeerId, Session] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._open: dict[Stream, tuple[End, End]] = {}
        self._stopping = False

    def add_routes(self, app: web.Application) -> None:
        """GET /v1/relayed/TICKET."""
        app.router.add_get(RELAYED_PATH + "/{ticket}", self._relayed)

    async def serve(self, session: Session) -> None:
        """A peer is registered until its session ends. Its newest session counts. Raises `QuotaUsed`."""
        peer, limits = session.peer, self.admission.limits
        for other in self.admission.register(peer, session.source, self._clock.monotonic()):
            self._registered[other].end(QuotaUsed("this relay has others to hold", fix="ask another relay"))
        before, self._registered[peer] = self._registered.get(peer), session
        log.debug("registered at the relay", peer=short(peer), at=session.address)
        try:
            if before is not None:
                await before.close()
            terms = RelayTerms(
                streams=limits.streams_of_peer, hourly_bytes=limits.hourly_bytes, stream_s=int(limits.stream_s)
            )
            await session.send(terms)
            while True:
                said, _ = await session.receive(FromRegistered)
                waiting = self._waiting.get(said.ticket)
                if waiting is not None and waiting.stream.peer == peer:
                    waiting.hear(said)
        finally:
            if self._registered.get(peer) is session:
                del self._registered[peer]
                self.admission.leave(peer)

    @web.middleware
    async def connects(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """CONNECT is ours; everything else goes on."""
        if request.method != "CONNECT":
            return await handler(request)
        if self._stopping:
            raise Refused("this relay is stopping")
        return await self._connect(request, _peer_named(request))

    async def run(self) -> None:
        """End the streams that are over, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            now = self._clock.monotonic()
            for stream in list(self._open):
                if why := self.admission.over(stream, now):
                    log.info("relayed stream ended", peer=short(stream.peer), reason=why)
                    self._abort(stream)

    async def stop(self) -> None:
        """End every stream and open no more."""
        self._stopping = True
        for waiting in self._waiting.values():
            if not waiting.came.done():
                waiting.came.set_exception(NotAtRelay("this relay is stopping"))
        gone = [end.gone.wait() for ends in self._open.values() for end in ends]
        for stream in list(self._open):
            self._abort(stream)
        await asyncio.gather(*gone)

    async def _connect(self, request: web.Request, peer: PeerId) -> web.StreamResponse:
        caller = plain_address(request.remote or "")
        stream = self.admission.open(peer, source_of(caller), self._clock.monotonic())
        ticket, waiting = secrets.token_hex(16), _Waiting(stream)
        self._waiting[ticket] = waiting
        try:
            async with asyncio.timeout(CALLBACK_S):
                await self._registered[peer].send(OpenStream(ticket=ticket, caller=caller))
                far = await asyncio.shield(waiting.came)
                near = take_over(request, lambda count: self._carried(stream, count))
                near.hold("until the peer is ready")
                join(near, far)
                self._open[stream] = (near, far)
                far.say(_SWITCHED)
                near.say(_CONNECTED)
                await waiting.ready.wait()
                near.let_go("until the peer is ready")
            await until_gone(near, far)
        except TimeoutError as error:
            raise NotAtRelay(f"peer {short(peer)} did not answer its relay in time") from error
        finally:
            waiting.give_up()
            del self._waiting[ticket]
            self._abort(stream)
            self.admission.close(stream)
        return web.Response()  # nobody gets it: the connection is gone

    def _abort(self, stream: Stream) -> None:
        for end in self._open.pop(stream, ()):
            end.abort()

    async def _relayed(self, request: web.Request) -> web.StreamResponse:
        waiting = self._waiting.get(request.match_info["ticket"])
        if waiting is None or waiting.came.done():
            raise NotFound("no stream waits under that ticket")
        end = take_over(request, lambda count: self._carried(waiting.stream, count))
        waiting.came.set_result(end)
        await end.gone.wait()
        return web.Response()  # nobody gets it: the connection is gone

    def _carried(self, stream: Stream, count: int) -> float:
        return self.admission.carried(stream, count, self._clock.monotonic())


def _peer_named(request: web.Request) -> PeerId:
    """The peer id in `CONNECT <peer id>:443`."""
    host, _, port = request.raw_path.partition(":") if request.raw_path else ("", "", "")
    try:
        public_key_of(host)
    except ValueError as error:
        raise MalformedMessage("CONNECT leads to a peer id here, and nowhere else") from error
    if port != "443":
        raise MalformedMessage("CONNECT <peer id>:443")
    return host
