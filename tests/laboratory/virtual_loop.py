"""An asyncio loop whose time leaps from one event to the next, and datagrams that never leave the process.

Unmodified protocols run on it, hundreds of nodes at once. What the machine computes takes no time at all, so latencies
do not depend on how busy it is, and a silence of an hour passes at once. Nothing else may be waited for on this loop:
no real socket, no thread, no process.
"""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import selectors
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from tests.laboratory.home_links import Address, HomeLinks

T = TypeVar("T")

LARGEST_UDP = 65507
FIRST_FREE_PORT = 40_000
LONGEST_LEAP_S = 1e9
"""A wait longer than this is a mistake: nothing is scheduled and nothing can ever happen."""


class _Leap(selectors.DefaultSelector):
    """Instead of waiting, it moves the loop's time."""

    leap: Callable[[float | None], None]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.leap(timeout)
        return []


class VirtualTransport(asyncio.DatagramTransport):
    """One endpoint; it fails where a real socket's transport fails, and in the same way."""

    def __init__(self, loop: VirtualLoop, protocol: asyncio.DatagramProtocol, address: Address) -> None:
        super().__init__()
        self.protocol = protocol
        self.address = address
        self._loop = loop
        self._closed = False

    def sendto(self, data: Any, addr: Any = None) -> None:
        """As asyncio does it: an address that no system call takes closes the socket for good, one that the system
        refuses is told to the protocol."""
        if self._closed:
            return
        host, port = addr[0], addr[1]
        if not 0 <= port <= 65535:
            self._close(OverflowError("port must be 0-65535"))
        elif port == 0 or len(data) > LARGEST_UDP or not _is_literal(host):
            self.protocol.error_received(OSError(f"cannot send {len(data)} bytes to {host}:{port}"))
        else:
            self._loop.carry(bytes(data), self.address, (host, port))

    def close(self) -> None:
        self._close(None)

    def abort(self) -> None:
        self._close(None)

    def is_closing(self) -> bool:
        return self._closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.address if name == "sockname" else default

    def _close(self, error: Exception | None) -> None:
        if not self._closed:
            self._closed = True
            self._loop.endpoints.pop(self.address, None)
            self._loop.call_soon(self.protocol.connection_lost, error)


class Meddler(Protocol):
    """Changes what one endpoint says."""

    def hear(self, data: bytes, sender: Address) -> None:
        """This arrived; the endpoint hears it next."""

    def say(self, data: bytes, target: Address) -> Sequence[tuple[float, bytes]]:
        """What leaves instead of this datagram, and how many seconds later."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop, and the network between its endpoints."""

    def __init__(self, links: HomeLinks) -> None:
        self.links = links
        self.endpoints: dict[Address, VirtualTransport] = {}
        self.sent: Counter[str] = Counter()
        """Datagrams and bytes since the start: `requests`, `answers`, `bytes`."""
        self.requests_by: Counter[Address] = Counter()
        self.errors: list[dict[str, Any]] = []
        """What nobody caught. A network of sound nodes leaves this empty, whatever others send."""
        self.meddlers: dict[Address, Meddler] = {}
        """Who sits in front of an endpoint, hears all that it hears, and says something else."""
        self._ports = itertools.count(FIRST_FREE_PORT)
        self._now = 1000.0
        selector = _Leap()
        selector.leap = self._leap
        super().__init__(selector)
        self.set_exception_handler(lambda _loop, context: self.errors.append(context))

    def time(self) -> float:
        return self._now

    async def create_datagram_endpoint(  # type: ignore[override]  # only what a DHT needs of it
        self, protocol_factory: Callable[[], Any], local_addr: tuple[str, int], **_options: Any
    ) -> tuple[VirtualTransport, Any]:
        address = (local_addr[0], local_addr[1] or next(self._ports))
        if address in self.endpoints:
            raise OSError(98, f"{address} is in use")
        protocol = protocol_factory()
        transport = self.endpoints[address] = VirtualTransport(self, protocol, address)
        protocol.connection_made(transport)
        return transport, protocol

    def carry(self, data: bytes, source: Address, target: Address) -> None:
        """A datagram is on its way, or lost, or it is what a meddler makes of it."""
        meddler = self.meddlers.get(source)
        if meddler is None:
            self._carry(data, source, target, 0.0)
            return
        for later, lie in meddler.say(data, target):
            self._carry(lie, source, target, later)

    def _carry(self, data: bytes, source: Address, target: Address, later: float) -> None:
        answer = data[:1] == b"\x01"
        self.sent["answers" if answer else "requests"] += 1
        self.sent["bytes"] += len(data)
        if not answer:
            self.requests_by[source] += 1
        delay = self.links.delay(source, target)
        if delay is not None:
            self.call_later(later + delay, self._arrive, data, source, target)

    def silence(self, address: Address) -> None:
        """Whoever is there hears and says nothing any more; nobody is told."""
        self.endpoints[address].close()

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        """As `asyncio.run`, but the network stays as it is afterwards, so that it can be run on.

        Raises `TimeoutError` when it takes longer than so many of the loop's own seconds.
        """
        if seconds is not None:
            coroutine = _within(seconds, coroutine)
        asyncio.set_event_loop(self)
        try:
            return self.run_until_complete(coroutine)
        finally:
            asyncio.set_event_loop(None)

    def _arrive(self, data: bytes, source: Address, target: Address) -> None:
        transport = self.endpoints.get(target)
        if transport is not None:
            if target in self.meddlers:
                self.meddlers[target].hear(data, source)
            transport.protocol.datagram_received(data, source)

    def _leap(self, timeout: float | None) -> None:
        if timeout is None or timeout > LONGEST_LEAP_S:
            raise RuntimeError("nothing is scheduled: this wait would never end")
        self._now += max(0.0, timeout)


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _within(seconds: float, coroutine: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(seconds):
        return await coroutine
