"""An HTTPS server on one port, which can turn a request into a session once the caller has proved its key."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import WSMsgType, web

from axonp2p.errors import (
    AxonError,
    Busy,
    MalformedMessage,
    PeerMisbehaved,
    PortTaken,
    SettingsError,
    TooOften,
    Unreachable,
)
from axonp2p.holdings import Bounds, Holdings
from axonp2p.identity.certificate import Certificate
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import short
from axonp2p.logs import get_logger
from axonp2p.supervision import one_look
from axonp2p.transport.address import join_host_port
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.flow.window import WaitingBytes
from axonp2p.transport.foreign_errors import NETWORK_ERRORS, plain_words
from axonp2p.transport.handshake import SESSION_PATH, check_hello, make_challenge
from axonp2p.transport.http.http_replies import ANSWERED, errors_as_refusals, name_server
from axonp2p.transport.messages import HANDSHAKE_LIMIT, NONCE_BYTES, Welcome, refusal_of
from axonp2p.transport.sessions.connections import Connections, LaneDoor
from axonp2p.transport.sessions.line_tuning import notice_arrivals
from axonp2p.transport.sessions.proxy_header import Networks
from axonp2p.transport.sessions.session import CLOSE_S, Session
from axonp2p.transport.tunnel.inner import RelayedTransport, source_at
from axonp2p.wire.codec import encode
from axonp2p.wire.frame import FRAME_LIMIT

log = get_logger(__name__)

PROOF_S = 3.0
"""How long a caller may take from its request to its proof, in seconds: two round trips and one signature."""
MOST_HANDSHAKES, MOST_HANDSHAKES_OF_ONE = 256, 64
"""How many callers may be half way through a handshake at once, in all and of one household: all members of a job on
one machine may come together. Where there are more, those of whoever has most are cut, after `HANDSHAKE_LEAST_S`."""
HANDSHAKE_LEAST_S = 0.5
"""Seconds that a half-open handshake is left alone: a round trip."""
MOST_SESSIONS, MOST_SESSIONS_OF_ONE, MOST_SESSIONS_OF_KEY = 512, 128, 64
"""How many sessions there may be at once: in all, of one household and of one key. Those that the application has taken
in (`Session.admit`) keep their places; others give way after `SESSION_LEAST_S`."""
SESSION_LEAST_S = 10.0
"""Seconds that a session is safe: as long as a caller may take to say what it wants."""
HANDSHAKE_ROOM = 16 * HANDSHAKE_LIMIT
"""Bytes of a caller that are read before its proof has been."""
UNTAKEN_OF_ONE, UNTAKEN_IN_ALL = 4 * 2**20, 16 * 2**20
"""Bytes that lie here untaken on all sessions together that are not taken in, of one household and in all."""
MESSAGES_A_SECOND, MESSAGES_AT_ONCE = 100.0, 500.0
"""Messages of one household that are dealt with on such sessions."""


class Listener:
    """Serves an aiohttp application over TLS 1.3 with the certificate of `key`."""

    def __init__(self, key: PrivateKey, certificate: Certificate, app: web.Application, proxies: Networks = ()) -> None:
        """Callers from `proxies` say by the PROXY protocol whom they pass on (`proxy_header`)."""
        self._key = key
        self._fingerprints = [certificate.fingerprint]
        self._tls = certificate.server_context()
        if errors_as_refusals not in app.middlewares:
            app.middlewares.insert(0, errors_as_refusals)
        self._connections = Connections(self._tls, proxies)
        app.middlewares.insert(0, self._connections.at_work)
        app.on_response_prepare.append(name_server)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSE_S)
        self._server: asyncio.Server | None = None
        self._sessions: dict[web.WebSocketResponse, Session] = {}
        self._lines: dict[Session, web.WebSocketResponse] = {}
        self._messages = RateLimit(MESSAGES_A_SECOND, MESSAGES_AT_ONCE)
        handshakes = Bounds(MOST_HANDSHAKES, MOST_HANDSHAKES_OF_ONE, MOST_HANDSHAKES, HANDSHAKE_LEAST_S)
        self._handshakes: Holdings[asyncio.Transport] = Holdings("handshakes", handshakes)
        sessions = Bounds(MOST_SESSIONS, MOST_SESSIONS_OF_ONE, MOST_SESSIONS_OF_KEY, SESSION_LEAST_S)
        self._places: Holdings[web.WebSocketResponse] = Holdings("sessions", sessions)
        self._untaken: WaitingBytes[Session] = WaitingBytes(UNTAKEN_OF_ONE, UNTAKEN_IN_ALL)
        self.host = ""
        """The IP address on which it listens, once started."""
        self.port = 0
        """The port, once started."""

    async def start(self, host: str, port: int) -> int:
        """Listen; port 0 takes a free one. Returns the port. Raises `PortTaken` or `SettingsError`."""
        await self._runner.setup()
        self._connections.serves = self._runner.server
        try:
            self._server = await asyncio.get_running_loop().create_server(
                self._connections.new, host, port, backlog=512
            )
        except OSError as error:
            await self._runner.cleanup()
            raise _cannot_listen(host, port, error) from error
        self._connections.start()
        self.host, self.port = self._server.sockets[0].getsockname()[:2]
        return self.port

    def renew(self, certificate: Certificate) -> None:
        """New connections get this certificate; those that are open keep theirs. Raises `SettingsError`."""
        certificate.server_context()  # what cannot be used must not replace what is in use
        certificate.load_into(self._tls)
        if self._connections.lanes is not None:
            self._connections.lanes.renew(certificate)
        self._fingerprints = [certificate.fingerprint, self._fingerprints[0]]

    def take_lanes(self, lanes: LaneDoor) -> None:
        """Connections of lanes that `lanes` awaits are its own from now on."""
        self._connections.lanes = lanes

    async def stop(self) -> None:
        """Take no more callers and end every session. Harmless when it does not listen."""
        if self._server is not None:
            self._server.close()
            await asyncio.gather(*(session.close() for session in list(self._sessions.values())))
            self._server = None
        await self._connections.stop()
        await self._runner.cleanup()

    async def take_in(
        self, outer: asyncio.Transport, caller: str, relay: str, ready: Callable[[], Awaitable[None]]
    ) -> None:
        """Serve the stream of `relay` as if `caller` (an IP address, as the relay says) had dialled us.

        `ready` is called once its bytes may come. Raises one of `NETWORK_ERRORS` when there is no TLS with it, and
        `TooOften` or `Busy` when there are too many of that caller, through that relay or in all.
        """
        await self._connections.take_in(outer, caller, relay, ready)

    def holds(self, session: Session, count: int) -> None:
        """`session.Door`."""
        if session not in self._lines:
            return  # it has ended, and somebody still reads what had come: nobody would release it again
        largest = self._untaken.holds(session, session.source, count)
        if largest is not None:
            self._untaken.release(largest)
            self._connections.misused(largest.source)
            largest.end(Busy("more waits here than there is room for", fix="take what is said, or say less"))

    def wait(self, session: Session) -> float:
        """`session.Door`."""
        try:
            self._messages.charge(session.source, _now())
        except TooOften as error:
            return error.wait_s
        return 0.0

    def admitted(self, session: Session) -> None:
        """`session.Door`."""
        self._untaken.release(session)
        if (line := self._lines.get(session)) is not None:
            self._places.works(line)

    def serve_sessions(self, app: web.Application, serve: Callable[[Session], Awaitable[None]]) -> None:
        """Route GET /v1/session to `serve`, which has a session until it returns or raises an `AxonError`.

        The error is told to the caller as a refusal. Must be called before `start`.
        """

        async def handle(request: web.Request) -> web.StreamResponse:
            session = await self.accept(request)
            try:
                with one_look("a session"):
                    await serve(session)
            except AxonError as error:
                log.info("session refused", peer=short(session.peer), reason=error.message)
                await session.refuse(error)
            finally:
                await session.close()
            return request[ANSWERED]

        app.router.add_get(SESSION_PATH, handle)

    async def accept(self, request: web.Request) -> Session:
        """Turn a request into a session with a caller who has proved its key. The handler must outlive the session.

        Raises `VersionMismatch`, `PeerMisbehaved`, `Busy` or `Unreachable`; the caller has been told by then.
        """
        address = request.remote or ""
        line = web.WebSocketResponse(timeout=CLOSE_S, autoping=False, compress=False, max_msg_size=FRAME_LIMIT + 1)
        if not line.can_prepare(request):
            raise MalformedMessage("only a WebSocket can become a session")
        transport = request.transport
        if transport is None:
            raise Unreachable("a caller was lost during its handshake", cause="it hung up")
        source = source_at(transport, address)
        for other in self._handshakes.take(transport, source, "", _now()):
            other.abort()
        try:
            async with asyncio.timeout(PROOF_S):
                await line.prepare(request)
                request[ANSWERED] = line
                lanes_from = "" if isinstance(transport, RelayedTransport) else source
                session = await self._prove(line, address, source, lanes_from)
        except NETWORK_ERRORS as error:
            await _hang_up(line)
            raise Unreachable("a caller was lost during its handshake", cause=plain_words(error)) from error
        except AxonError as error:
            with suppress(TimeoutError, *NETWORK_ERRORS):
                async with asyncio.timeout(CLOSE_S):
                    await line.send_bytes(encode(refusal_of(error)))
            await _hang_up(line)
            raise
        finally:
            self._handshakes.release(transport)
            if line not in self._sessions:
                self._places.release(line)
        return session

    async def _prove(self, line: web.WebSocketResponse, address: str, source: str, lanes_from: str) -> Session:
        room = HANDSHAKE_ROOM

        def hear(count: int) -> bool:
            nonlocal room
            room -= count
            return room >= 0

        notice_arrivals(line, hear)
        nonce = os.urandom(NONCE_BYTES)
        await line.send_bytes(make_challenge(self._key.peer_id, nonce))
        kind, data, _ = await line.receive()
        if kind is not WSMsgType.BINARY:
            raise Unreachable("a caller was lost during its handshake", cause="it hung up")
        peer = check_hello(
            bytes(data[: HANDSHAKE_LIMIT + 1]),
            nonce=nonce,
            listener=self._key.peer_id,
            fingerprints=self._fingerprints,
        )
        for other in self._places.take(line, source, peer, _now()):
            self._sessions[other].end(Busy("this session waited while others came to do something"))
        await line.send_bytes(encode(Welcome()))
        session = Session(line, peer=peer, address=address, source=source, called=f"peer {short(peer)}", door=self)
        session.lanes_from = lanes_from
        self._sessions[line], self._lines[session] = session, line
        ended = asyncio.create_task(session.ended.wait())
        ended.add_done_callback(lambda _: self._forget(line))
        return session

    def _forget(self, line: web.WebSocketResponse) -> None:
        self._places.release(line)
        if (session := self._sessions.pop(line, None)) is not None:
            del self._lines[session]
            if isinstance(session.failure, PeerMisbehaved):
                self._connections.misused(session.source)
            self._untaken.release(session)


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _hang_up(line: web.WebSocketResponse) -> None:
    if line.prepared:
        with suppress(TimeoutError, *NETWORK_ERRORS):
            async with asyncio.timeout(CLOSE_S):
                await line.close()


def _cannot_listen(host: str, port: int, error: OSError) -> SettingsError:
    where = join_host_port(host, port)
    if error.errno == errno.EADDRINUSE:
        return PortTaken(
            f"something else already listens at {where}",
            fix="stop it, or choose another port with --listen HOST:PORT (port 0 takes a free one)",
        )
    cause = "that host name is not known" if isinstance(error, socket.gaierror) else error.strerror or str(error)
    return SettingsError(f"cannot listen at {where}", cause=cause, fix="choose another address with --listen HOST:PORT")
