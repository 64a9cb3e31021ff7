"""The caller's side of a relay: CONNECT to a peer id, then TLS with the peer itself inside (a door)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler

from axonp2p.errors import AxonError, MalformedMessage, MessageTooLarge, PeerMisbehaved, Unreachable
from axonp2p.identity.peer_id import PeerId
from axonp2p.transport.address import PinnedAddress, join_host_port
from axonp2p.transport.foreign_errors import NETWORK_ERRORS, NoWayThrough, translated
from axonp2p.transport.messages import Refusal, error_of
from axonp2p.transport.tls import client_context
from axonp2p.wire.codec import decode_as

if TYPE_CHECKING:
    from aiohttp import ClientRequest, ClientTimeout
    from aiohttp.tracing import Trace

HEAD_LIMIT = 8 * 1024
REFUSAL_LIMIT = 32 * 1024
OPENING_S = 10.0
"""How long a relay may take for TLS and its answer, in seconds; the peer has to call it back within that."""
BUFFERED_BYTES = 64 * 1024
"""The bytes that may lie outside the inner TLS, where no word can overtake it."""


async def ask_relay(
    relay: PinnedAddress, request: str, *, granted: int, local_address: str | None = None
) -> asyncio.Transport:
    """Say `request` (a head without its end) to a relay; the connection, which is the stream's from then on.

    `granted` is the status that means yes. Raises what the relay refused with, `Unreachable`, or `PeerMisbehaved`.
    """
    called = f"relay {relay.host_port}"
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(OPENING_S):
            transport, answer = await loop.create_connection(
                _Answer,
                relay.host,
                relay.port,
                ssl=client_context(verified=relay.fingerprint is None),
                local_addr=None if local_address is None else (local_address, 0),
            )
            try:
                if relay.fingerprint is not None:
                    aiohttp.Fingerprint(relay.fingerprint).check(transport)
                transport.write(f"{request}\r\nUser-Agent: axon\r\n\r\n".encode("ascii"))
                status, body = await answer.heard
                if status != granted:
                    raise _refusal(status, body, called)
            except BaseException:
                transport.abort()
                raise
    except NETWORK_ERRORS as error:
        raise translated(error, called) from error
    transport.set_write_buffer_limits(high=BUFFERED_BYTES)
    return transport


async def connect_through(relay: PinnedAddress, peer: PeerId, local_address: str | None = None) -> asyncio.Transport:
    """A stream to that peer, on which the peer waits for TLS. Raises as `ask_relay`."""
    authority = f"{peer}:443"
    request = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}"
    return await ask_relay(relay, request, granted=200, local_address=local_address)


async def pick_up(relay: PinnedAddress, ticket: str) -> asyncio.Transport:
    """The peer's end of the stream with that ticket. Raises as `ask_relay`."""
    host = join_host_port(relay.host, relay.port)
    upgrade = "Connection: upgrade\r\nUpgrade: tcp"
    request = f"GET /v1/relayed/{ticket} HTTP/1.1\r\nHost: {host}\r\n{upgrade}"
    return await ask_relay(relay, request, granted=101)


class TunnelConnector(aiohttp.BaseConnector):
    """Connections to one peer through one relay, pinned to the peer's own certificate."""

    def __init__(
        self, relay: PinnedAddress, peer: PinnedAddress, *, local_address: str | None, connections: int
    ) -> None:
        """The peer's id stands for the host in `peer`."""
        super().__init__(limit=connections, keepalive_timeout=60)
        self._relay = relay
        self._peer = peer
        self._local_address = local_address

    async def _create_connection(
        self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout
    ) -> ResponseHandler:
        assert self._peer.fingerprint is not None  # nobody is spoken to unpinned inside
        try:
            outer = await connect_through(self._relay, self._peer.host, self._local_address)
        except AxonError as error:
            # Whatever a relay does: the peer has not misbehaved, and has not refused either.
            raise NoWayThrough(error.in_a_line) from error
        protocol = self._factory()
        inner: asyncio.Transport | None = None
        try:
            started = await self._loop.start_tls(outer, cast(Any, protocol), client_context(verified=False))
            if started is None:
                raise ConnectionResetError("the relayed connection was lost")
            inner = started
            aiohttp.Fingerprint(self._peer.fingerprint).check(inner)
        except BaseException:
            (inner or outer).abort()
            raise
        protocol.connection_made(inner)
        return protocol


class _Answer(asyncio.Protocol):
    """Reads the head of one answer, and the body of a refusal; nothing may follow a yes."""

    def __init__(self) -> None:
        self.heard: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        """Status and body."""
        self._came = bytearray()

    def data_received(self, data: bytes) -> None:
        """Until there is enough."""
        self._came += data
        self._look(at_end=False)

    def eof_received(self) -> bool:
        """No more comes."""
        self._look(at_end=True)
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """Nobody waits for nothing."""
        self._fail(error or ConnectionResetError("it hung up"))

    def _look(self, *, at_end: bool) -> None:
        if self.heard.done():
            return
        try:
            answer = _read_answer(self._came, at_end=at_end)
        except PeerMisbehaved as error:
            self._fail(error)
            return
        if answer is not None:
            self.heard.set_result(answer)

    def _fail(self, error: Exception) -> None:
        if not self.heard.done():
            self.heard.set_exception(error)
            self.heard.exception()  # whoever waits gets it; when nobody does any more, nobody needs to be told


def _read_answer(came: bytearray, *, at_end: bool) -> tuple[int, bytes] | None:
    """Status and body; None while more must come. Raises `PeerMisbehaved`."""
    head, end, body = bytes(came).partition(b"\r\n\r\n")
    if not end:
        if len(head) > HEAD_LIMIT:
            raise MessageTooLarge("a relay's answer without an end")
        return None
    lines = head.split(b"\r\n")
    words = lines[0].split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not (words[1].isdigit() and len(words[1]) == 3):
        raise MalformedMessage("a relay that does not answer as HTTP")
    status = int(words[1])
    if status in (101, 200):
        if body:
            raise MalformedMessage("bytes on a stream before anybody spoke")
        return status, b""
    if len(body) > REFUSAL_LIMIT:
        raise MessageTooLarge("a relay's refusal without an end")
    lengths = [line.partition(b":")[2].strip() for line in lines[1:] if line.lower().startswith(b"content-length:")]
    length = int(lengths[0]) if lengths and lengths[0].isdigit() and len(lengths[0]) < 8 else 0
    return (status, body[:length]) if at_end or len(body) >= length else None


def _refusal(status: int, body: bytes, called: str) -> AxonError:
    try:
        return error_of(decode_as(body, Refusal, REFUSAL_LIMIT), called)
    except PeerMisbehaved:
        return Unreachable(f"{called} opens no stream", cause=f"HTTP status {status}")
