"""An HTTPS server on one port, which can turn a request into a session once the caller has proved its key."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from aiohttp import WSMsgType, web

from axonp2p.errors import AxonError, Busy, MalformedMessage, PortTaken, SettingsError, Unreachable
from axonp2p.identity.certificate import Certificate
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import short
from axonp2p.logs import get_logger
from axonp2p.supervision import one_look
from axonp2p.transport.address import join_host_port
from axonp2p.transport.foreign_errors import NETWORK_ERRORS, plain_words
from axonp2p.transport.handshake import SESSION_PATH, check_hello, make_challenge
from axonp2p.transport.http_replies import ANSWERED, errors_as_refusals
from axonp2p.transport.messages import HANDSHAKE_LIMIT, NONCE_BYTES, Welcome, refusal_of
from axonp2p.transport.relay.inner import EarlyBytes, RelayedTransport
from axonp2p.transport.session import CLOSE_S, Session
from axonp2p.wire.codec import encode
from axonp2p.wire.frame import FRAME_LIMIT

log = get_logger(__name__)

HANDSHAKE_S = 10.0
"""How long a caller may take for TLS, and again for its proof, in seconds."""
MOST_HANDSHAKES = 128
MOST_HANDSHAKES_OF_ONE = 64
"""How many callers may be half way through a handshake at once, in all and from one IP address."""
MOST_SESSIONS = 512
MOST_SESSIONS_OF_ONE = 256
"""How many sessions there may be at once, in all and from one IP address."""
KEEP_ALIVE_S = 75
"""How long a connection for short questions stays open unused; `HttpCaller` gives it up sooner."""


class Listener:
    """Serves an aiohttp application over TLS 1.3 with the certificate of `key`."""

    def __init__(self, key: PrivateKey, certificate: Certificate, app: web.Application) -> None:
        self._key = key
        self._certificate = certificate
        if errors_as_refusals not in app.middlewares:
            app.middlewares.append(errors_as_refusals)
        # auto_decompress would let a small body unfold past the cap it was held to.
        self._runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=CLOSE_S,
            keepalive_timeout=KEEP_ALIVE_S,
            auto_decompress=False,
        )
        self._tls = certificate.server_context()
        self._server: asyncio.Server | None = None
        self._sessions: set[Session] = set()
        self._half_open: Counter[str] = Counter()
        self.port = 0
        """The port, once started."""

    async def start(self, host: str, port: int) -> int:
        """Listen; port 0 takes a free one. Returns the port. Raises `PortTaken` or `SettingsError`."""
        await self._runner.setup()
        handler = self._runner.server
        assert handler is not None
        try:
            self._server = await asyncio.get_running_loop().create_server(
                handler,
                host,
                port,
                ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=CLOSE_S,
                backlog=512,
            )
        except OSError as error:
            await self._runner.cleanup()
            raise _cannot_listen(host, port, error) from error
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    async def stop(self) -> None:
        """Take no more callers and end every session. Harmless when it does not listen."""
        if self._server is not None:
            self._server.close()
            await asyncio.gather(*(session.close() for session in self._sessions))
            self._server = None
        await self._runner.cleanup()

    async def take_in(self, outer: asyncio.Transport, caller: str, ready: Callable[[], Awaitable[None]]) -> None:
        """Serve the stream of a relay as if `caller` (an IP address, as the relay says) had dialled us.

        `ready` is called once its bytes may come. Raises one of `NETWORK_ERRORS` when there is no TLS with it.
        """
        handler = self._runner.server
        assert handler is not None  # it listens
        early = EarlyBytes()
        starting = asyncio.create_task(
            asyncio.get_running_loop().start_tls(
                outer,
                early,
                self._tls,
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=CLOSE_S,
            )
        )
        try:
            await asyncio.sleep(0)  # from its first step on it takes what comes
            await ready()
            inner = await starting
        except BaseException:
            starting.cancel()
            outer.abort()
            raise
        if inner is not None:
            early.hand_over(RelayedTransport(inner, caller), handler())

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
        async with self._one_more_handshake(address):
            line = web.WebSocketResponse(timeout=CLOSE_S, autoping=False, compress=False, max_msg_size=FRAME_LIMIT + 1)
            if not line.can_prepare(request):
                raise MalformedMessage("only a WebSocket can become a session")
            try:
                async with asyncio.timeout(HANDSHAKE_S):
                    await line.prepare(request)
                    request[ANSWERED] = line
                    session = await self._prove(line, address)
            except NETWORK_ERRORS as error:
                await _hang_up(line)
                raise Unreachable("a caller was lost during its handshake", cause=plain_words(error)) from error
            except AxonError as error:
                with suppress(TimeoutError, *NETWORK_ERRORS):
                    async with asyncio.timeout(CLOSE_S):
                        await line.send_bytes(encode(refusal_of(error)))
                await _hang_up(line)
                raise
        self._keep(session)
        return session

    async def _prove(self, line: web.WebSocketResponse, address: str) -> Session:
        nonce = os.urandom(NONCE_BYTES)
        await line.send_bytes(make_challenge(self._key.peer_id, nonce))
        kind, data, _ = await line.receive()
        if kind is not WSMsgType.BINARY:
            raise Unreachable("a caller was lost during its handshake", cause="it hung up")
        peer = check_hello(
            bytes(data[: HANDSHAKE_LIMIT + 1]),
            nonce=nonce,
            listener=self._key.peer_id,
            fingerprint=self._certificate.fingerprint,
        )
        await line.send_bytes(encode(Welcome()))
        return Session(line, peer=peer, address=address, called=f"peer {short(peer)}")

    @asynccontextmanager
    async def _one_more_handshake(self, address: str) -> AsyncIterator[None]:
        if self._half_open.total() >= MOST_HANDSHAKES or self._half_open[address] >= MOST_HANDSHAKES_OF_ONE:
            raise Busy("too many callers are in their handshake", fix="try again in a few seconds")
        of_one = sum(session.address == address for session in self._sessions)
        if len(self._sessions) >= MOST_SESSIONS or of_one >= MOST_SESSIONS_OF_ONE:
            raise Busy("too many sessions are open", fix="try again later, or elsewhere")
        self._half_open[address] += 1
        try:
            yield
        finally:
            self._half_open[address] -= 1
            self._half_open += Counter()  # drops the addresses that are down to zero

    def _keep(self, session: Session) -> None:
        self._sessions.add(session)
        ended = asyncio.create_task(session.ended.wait())
        ended.add_done_callback(lambda _: self._sessions.discard(session))


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
