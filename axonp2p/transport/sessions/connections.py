"""The open connections of one listener: who may have one, and who lets go of one (a door).

A connection is counted from its first packet, before TLS, because silent ones cost descriptors and half-open TLS costs
memory. One on which a question is answered, or a session runs, works; any other is idle, and gives way when there are
too many (`holdings`). asyncio's own TLS server would tell of a connection only after its handshake, so the handshake is
begun here, as it is for the streams of relays.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from aiohttp import web
from aiohttp.typedefs import Handler
from aiohttp.web import BaseRequest, StreamResponse

from axonp2p.errors import AxonError, Busy, TooOften
from axonp2p.files import descriptor_limit
from axonp2p.holdings import Bounds, Holdings
from axonp2p.identity.certificate import Certificate
from axonp2p.logs import get_logger
from axonp2p.supervision import cancel_and_wait, in_background
from axonp2p.transport.address import source_of
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.foreign_errors import NETWORK_ERRORS
from axonp2p.transport.http.http_replies import SERVER
from axonp2p.transport.sessions.before_tls import take_header, take_preamble
from axonp2p.transport.sessions.proxy_header import Networks, is_within
from axonp2p.transport.tunnel.inner import EarlyBytes, NamedTransport, RelayedTransport, relayed_source

log = get_logger(__name__)

MOST_CONNECTIONS = 2048
"""Open at once, in all: some 80 kB each once TLS is spoken. Less where there are fewer descriptors."""
MOST_OF_ONE = 256
"""From one household, or through one relay. A university behind one address has idle ones given up for new ones."""
LEAST_AGE_S = 2.0
"""For so long a new or idle connection is safe: many round trips, so that an honest caller can ask its question."""
OPENED_A_SECOND, OPENED_AT_ONCE = 20.0, 300.0
"""New connections from one household, or through one relay; more are closed before TLS. Each costs a TLS handshake, and
with a session's first half two to four milliseconds of this machine: one that is refused costs a tenth of one."""
MISUSE_COST = 20.0
"""As many new connections a session counts that broke the protocol, also where fewer are left."""
TLS_S = 10.0
"""How long a caller may take for TLS, in seconds; also to the end of the head of its first question, TLS included."""
KEEP_ALIVE_S = 75.0
"""How long a connection for short questions stays open unused; `HttpCaller` gives it up sooner."""
ANSWER_TAKEN_S = KEEP_ALIVE_S + 15.0
"""An answer that was not taken for so long ends its connection, as does an idle one that aiohttp has not ended."""
LOOK_S = 1.0
"""How often it is looked which connections are over."""
MOST_UNNAMED = 256
"""Connections of trusted proxies that have not said yet for whom they call."""
_PROXY_FIX = "let the proxy pass TCP on with the PROXY protocol (nginx: proxy_protocol on; HAProxy: send-proxy-v2)"
TLS_CLOSE_S = 2.0
"""How long the end of TLS may take, in seconds."""


class LaneDoor(Protocol):
    """The code for connections that are no TLS for asyncio: the lanes of sessions that are here (`transport.lanes`)."""

    def awaits(self, source: str) -> bool:
        """Whether a caller of that household may bring a lane now."""
        ...

    def take(self, line: socket.socket, source: str, over: Callable[[], None]) -> Callable[[], None]:
        """Serve a connection whose preamble has come; gives what cuts it. `over` is called once it has ended."""
        ...

    def renew(self, certificate: Certificate) -> None:
        """New lanes show this certificate."""
        ...


class Connection(asyncio.Protocol):
    """One of them: the plain connection until TLS is spoken on it, and its name among those that are held."""

    def __init__(self, connections: Connections | None = None) -> None:
        self.asked = False
        """Whether a whole question, or the beginning of a session, has come on it."""
        self.plain: asyncio.Transport | None = None
        self.cut_lane: Callable[[], None] | None = None
        """Ends the lane that it has become."""
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """`asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)
        assert self._connections is not None
        # The coming bytes belong to TLS, which is not there yet. Said now, Debian's Python 3.11.2 would forget it: it
        # begins to read right after this call. Its first reading comes after the loop's next step, so it is stopped in
        # time.
        asyncio.get_running_loop().call_soon(transport.pause_reading)
        self.plain = transport
        self._connections.came(self, transport)

    def abort(self) -> None:
        """No more of it."""
        if self.plain is not None:
            self.plain.abort()
        if self.cut_lane is not None:
            self.cut_lane()


class _Served(web.RequestHandler):
    """aiohttp's side of a connection, which says when it is lost."""

    __slots__ = ("connection", "release")

    connection: Connection
    release: Callable[[Connection], None]

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> StreamResponse:
        answer = super().handle_error(request, status, exc, message)
        answer.headers["Server"] = SERVER  # it is given before any application sees the request
        return answer

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self.release(self.connection)


class Connections:
    """Those of one listener. `serves` is set before the first one comes."""

    def __init__(self, tls: ssl.SSLContext, proxies: Networks = ()) -> None:
        """A proxy that calls from `proxies` has to say for whom, by the PROXY protocol, and is believed."""
        self._proxies = proxies
        self._unnamed = 0
        """Connections of proxies that have not said yet for whom."""
        self.lanes: LaneDoor | None = None
        """The code that serves lanes, where there may be any."""
        self.serves: web.Server | None = None
        """The code that answers."""
        self._tls = tls
        self._held: Holdings[Connection] = Holdings("connections", connection_bounds(_descriptors()))
        self._pace = RateLimit(OPENED_A_SECOND, OPENED_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._looking: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._held)

    def start(self) -> None:
        """Look from now on which are over."""
        self._look()

    async def stop(self) -> None:
        """End those that have not come to speak TLS."""
        if self._looking is not None:
            self._looking.cancel()
        await cancel_and_wait(*self._tasks)

    def new(self) -> Connection:
        """For `create_server`."""
        return Connection(self)

    def came(self, connection: Connection, transport: asyncio.Transport) -> None:
        """Somebody has connected: it is refused at once, or TLS begins."""
        address = str((transport.get_extra_info("peername") or ("",))[0])
        if is_within(address, self._proxies):
            in_background(self._tasks, self._named_by_proxy(connection, transport, address))
        elif self._let_in(connection, transport, address):
            in_background(self._tasks, self._shake_hands(connection, transport))

    def _let_in(self, connection: Connection, transport: asyncio.Transport, address: str) -> bool:
        """Whether there is room for one more of that household; else the connection is over."""
        try:
            self._pace.take(address, _now())
            self._take(connection, source_of(address), "")
        except (TooOften, Busy):
            transport.abort()
            return False
        return True

    async def _named_by_proxy(self, connection: Connection, transport: asyncio.Transport, proxy: str) -> None:
        if self._unnamed >= MOST_UNNAMED:
            transport.abort()
            return
        self._unnamed += 1
        try:
            caller = await take_header(transport) or proxy
        except (AxonError, *NETWORK_ERRORS, asyncio.CancelledError) as error:
            if isinstance(error, AxonError):
                log.warning("a proxy is not understood", proxy=proxy, reason=error.message, fix=_PROXY_FIX)
            transport.abort()
            return
        finally:
            self._unnamed -= 1
        if self._let_in(connection, transport, caller):
            await self._shake_hands(connection, transport, caller)

    def misused(self, source: str) -> None:
        """Somebody of that household has broken the protocol."""
        self._pace.debit(source, _now(), MISUSE_COST)

    async def take_in(
        self, outer: asyncio.Transport, caller: str, relay: str, ready: Callable[[], Awaitable[None]]
    ) -> None:
        """A relay's stream, counted for the caller that it names, apart from who calls directly, and for the relay.

        Raises one of `NETWORK_ERRORS`, `TooOften` or `Busy` when there is no TLS with it.
        """
        connection = Connection()
        connection.plain = outer
        source = relayed_source(caller, relay)
        try:
            for name in (relay, source):
                self._pace.charge(name, _now())
            self._take(connection, source, relay)
            await self._speak_tls(connection, outer, ready, partial(RelayedTransport, caller=caller, relay=relay))
        except BaseException:
            self._held.release(connection)
            outer.abort()
            raise

    @web.middleware
    async def at_work(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A connection works while it is answered."""
        served = request.protocol
        if not isinstance(served, _Served):
            return await handler(request)
        served.connection.asked = True
        self._held.works(served.connection)
        try:
            return await handler(request)
        finally:
            self._held.waits(served.connection, _now())

    async def _shake_hands(self, connection: Connection, transport: asyncio.Transport, caller: str = "") -> None:
        """`caller`: whom a proxy passes on."""
        named = partial(NamedTransport, caller=caller, source=source_of(caller)) if caller else None
        try:
            if await self._became_lane(connection, transport, caller):
                return
            await self._speak_tls(connection, transport, named=named)
        except (*NETWORK_ERRORS, asyncio.CancelledError) as error:
            self._held.release(connection)
            transport.abort()
            # The error and asyncio's frames hold each other, and the buffers of TLS: the collector would come too late.
            traceback.clear_frames(error.__traceback__)

    async def _became_lane(self, connection: Connection, transport: asyncio.Transport, caller: str) -> bool:
        """Whether it is a lane, which is then served elsewhere, and keeps its place here until it ends."""
        source = source_of(caller or str((transport.get_extra_info("peername") or ("",))[0]))
        if self.lanes is None or not self.lanes.awaits(source) or not await take_preamble(transport):
            return False
        line = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        transport.abort()  # closes asyncio's own descriptor alone
        connection.plain, connection.asked = None, True
        self._held.works(connection)
        connection.cut_lane = self.lanes.take(line, source, partial(self._held.release, connection))
        return True

    async def _speak_tls(
        self,
        connection: Connection,
        plain: asyncio.Transport,
        ready: Callable[[], Awaitable[None]] | None = None,
        named: Callable[[asyncio.Transport], NamedTransport] | None = None,
    ) -> None:
        early = EarlyBytes()
        starting = asyncio.create_task(
            asyncio.get_running_loop().start_tls(
                plain,
                early,
                self._tls,
                server_side=True,
                ssl_handshake_timeout=TLS_S,
                ssl_shutdown_timeout=TLS_CLOSE_S,
            )
        )
        try:
            if ready is not None:
                await asyncio.sleep(0)  # from its first step on it takes what comes
                await ready()
            inner = await starting
        except BaseException:
            starting.cancel()
            raise
        if inner is None:
            raise ConnectionResetError
        served = self._served(connection)
        if not early.hand_over(named(inner) if named else inner, served):
            self._held.release(connection)

    def _served(self, connection: Connection) -> _Served:
        assert self.serves is not None
        # auto_decompress would let a small body unfold past the cap it was held to.
        served = _Served(
            self.serves,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # aiohttp's own way to say that there is none
            keepalive_timeout=KEEP_ALIVE_S,
            auto_decompress=False,
        )
        served.connection, served.release = connection, self._held.release
        return served

    def _take(self, connection: Connection, source: str, relay: str) -> None:
        for other in self._held.take(connection, source, relay, _now()):
            other.abort()

    def _look(self) -> None:
        for connection in self._held.idle_for(TLS_S, _now()):
            if not connection.asked:
                connection.abort()
        for connection in self._held.idle_for(ANSWER_TAKEN_S, _now()):
            connection.abort()
        self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)


def connection_bounds(descriptors: int) -> Bounds:
    """As many as leave a quarter of the descriptors for files, databases and our own calls."""
    in_all = min(MOST_CONNECTIONS, descriptors * 3 // 4)
    return Bounds(in_all, min(MOST_OF_ONE, in_all // 2), MOST_OF_ONE, LEAST_AGE_S)


def _descriptors() -> int:
    return descriptor_limit() or MOST_CONNECTIONS * 2


def _now() -> float:
    return asyncio.get_running_loop().time()
