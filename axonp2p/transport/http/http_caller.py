"""Short questions: one POST, one bounded answer, over connections that stay open in between."""

from __future__ import annotations

import asyncio
from typing import Self, TypeVar

import aiohttp

from axonp2p.errors import AxonError, Busy, MessageTooLarge, PeerMisbehaved, Unreachable
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.dial_policy import NO_ADDRESS, DialPolicy, is_address
from axonp2p.transport.foreign_errors import NETWORK_ERRORS, translated
from axonp2p.transport.http.http_client import open_client
from axonp2p.transport.messages import Refusal, error_of
from axonp2p.transport.tls import client_context
from axonp2p.transport.ways import Way
from axonp2p.wire.codec import Message, decode_as, encode

CONTENT_TYPE = "application/msgpack"
PING_PATH = "/v1/ping"
REFUSAL_LIMIT = 32 * 1024
LONGEST_WAIT_DIGITS = 4
"""Of a Retry-After: nobody is sent away for longer than some hours."""

T = TypeVar("T")

_HUNG_UP = (aiohttp.ServerDisconnectedError, aiohttp.ClientConnectionResetError, ConnectionResetError, BrokenPipeError)


class HttpCaller:
    """One pool of connections to one pinned address. `called` names the other side for people ("tracker lab")."""

    def __init__(
        self,
        address: PinnedAddress,
        *,
        called: str,
        relay: PinnedAddress | None = None,
        policy: DialPolicy | None = None,
        local_address: str | None = None,
        timeout_s: float = 10,
        unreachable: type[Unreachable] = Unreachable,
    ) -> None:
        """Through a `relay` the id of a peer stands for the host in `address`.

        `policy` says which addresses may be dialled where a stranger named this one; None: the owner of this machine
        did, or it was asked about before.
        """
        self._policy = policy
        self.address = address
        self._way = Way(address, relay)
        self.called = called
        self._local_address = local_address
        self._timeout_s = timeout_s
        self._unreachable = unreachable
        self._client: aiohttp.ClientSession | None = None
        self._warm = False
        self.sent = 0
        """Bytes of messages, since the start; what HTTP and TLS add is not counted."""
        self.received = 0
        """The same for answers."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection. A later call opens new ones."""
        client, self._client, self._warm = self._client, None, False
        if client is not None:
            await client.close()

    async def call(
        self, path: str, message: Message | None, answer: type[T], limit: int, *, timeout_s: float | None = None
    ) -> T:
        """POST `message` (GET when None) and decode the answer, which may have at most `limit` bytes.

        Raises what the other side refused with, `Unreachable` (or the class asked for), `MessageTooLarge` or
        `MalformedMessage`. `timeout_s` covers the whole call.
        """
        body = await self._exchange(path, message, limit, timeout_s)
        try:
            return decode_as(body, answer, limit)
        except PeerMisbehaved as error:
            raise type(error)(f"{self.called}: {error.message}", cause=error.cause) from error

    async def fetch(self, path: str, limit: int) -> bytes:
        """GET what is no message of ours: JSON for operators, say. At most `limit` bytes. Raises as `call`."""
        return await self._exchange(path, None, limit, None)

    async def round_trip(self) -> float:
        """Seconds of one GET on a connection that is already open. Raises as `call`."""
        if not self._warm:
            await self._ping()
        loop = asyncio.get_running_loop()
        start = loop.time()
        await self._ping()
        return loop.time() - start

    async def _ping(self) -> None:
        await self._exchange(PING_PATH, None, REFUSAL_LIMIT, None)

    async def _exchange(self, path: str, message: Message | None, limit: int, timeout_s: float | None) -> bytes:
        try:
            try:
                return await self._request(path, message, limit, timeout_s)
            except _HUNG_UP:
                # A server that restarted since the last call hung up on the connection that was kept for this one.
                if not self._warm:
                    raise
                self._warm = False
                return await self._request(path, message, limit, timeout_s)
        except NETWORK_ERRORS as error:
            self._warm = False
            raise translated(error, self.called, self._unreachable) from error

    async def _request(self, path: str, message: Message | None, limit: int, timeout_s: float | None) -> bytes:
        if self._client is None:
            host = self.address.host
            if self._policy is not None and is_address(host) and not self._policy.allows(host):
                raise self._unreachable(f"{self.called} cannot be reached", cause=NO_ADDRESS)
            self._client = open_client(
                self._way,
                local_address=self._local_address,
                timeout_s=self._timeout_s,
                connections=8,
                policy=self._policy,
            )
        data = None if message is None else encode(message)
        self.sent += len(data or b"")
        async with self._client.request(
            "GET" if message is None else "POST",
            self.address.url + path,
            data=data,
            headers=None if message is None else {"Content-Type": CONTENT_TYPE},
            ssl=client_context(verified=self.address.fingerprint is None),
            timeout=aiohttp.ClientTimeout(total=timeout_s or self._timeout_s),
            allow_redirects=False,
        ) as response:
            granted = 200 <= response.status < 300
            body = await self._read(response, limit if granted else REFUSAL_LIMIT)
            self._warm = True
            self.received += len(body)
            if not granted:
                raise self._refusal(response, body)
            return body

    async def _read(self, response: aiohttp.ClientResponse, limit: int) -> bytes:
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > limit:
                raise MessageTooLarge(f"{self.called} answers with more than {limit} bytes")
        return bytes(body)

    def _refusal(self, response: aiohttp.ClientResponse, body: bytes) -> AxonError:
        try:
            error = error_of(decode_as(body, Refusal, REFUSAL_LIMIT), self.called)
        except PeerMisbehaved:
            cause = f"HTTP status {response.status}"
            return self._unreachable(f"{self.called} answers, but not as ours do", cause=cause)
        wait = response.headers.get("Retry-After", "")
        if isinstance(error, Busy) and wait.isascii() and wait.isdigit() and len(wait) <= LONGEST_WAIT_DIGITS:
            error.wait_s = float(wait)
        return error
