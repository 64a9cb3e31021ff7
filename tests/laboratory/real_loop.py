"""Real UDP sockets of one process on loopback, each datagram held back as long as a home's link would."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tests.laboratory.home_links import Address, HomeLinks

T = TypeVar("T")


class DelayingTransport(asyncio.DatagramTransport):
    """In front of a real transport. What it hands on later, the real one sends, refuses or fails on."""

    def __init__(self, loop: RealLoop, real: asyncio.DatagramTransport) -> None:
        super().__init__()
        self._loop = loop
        self._real = real
        self.address: Address = real.get_extra_info("sockname")[:2]

    def sendto(self, data: Any, addr: Any = None) -> None:
        """Send it when the link's delay is over, or never: lost."""
        self._loop.count(bytes(data), self.address)
        delay = self._loop.links.delay(self.address, (addr[0], addr[1]))
        if delay is not None:
            self._loop.call_later(delay, self._hand_on, bytes(data), addr)

    def _hand_on(self, data: bytes, addr: Any) -> None:
        if not self._real.is_closing():
            self._real.sendto(data, addr)

    def close(self) -> None:
        self._real.close()

    def abort(self) -> None:
        self._real.abort()

    def is_closing(self) -> bool:
        return self._real.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._real.get_extra_info(name, default)


class _Between(asyncio.DatagramProtocol):
    """Gives the protocol the delaying transport instead of the real one."""

    def __init__(self, loop: RealLoop, protocol: Any) -> None:
        self.protocol = protocol
        self.loop = loop
        self.transport: DelayingTransport

    def connection_made(self, transport: Any) -> None:
        self.transport = DelayingTransport(self.loop, transport)
        self.protocol.connection_made(self.transport)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.protocol.datagram_received(data, addr)

    def error_received(self, exc: Exception) -> None:
        self.protocol.error_received(exc)

    def connection_lost(self, exc: Exception | None) -> None:
        self.protocol.connection_lost(exc)


class RealLoop(asyncio.SelectorEventLoop):
    """The machine's time and sockets; counts and reports as the virtual loop does."""

    def __init__(self, links: HomeLinks) -> None:
        super().__init__()
        self.links = links
        self.endpoints: dict[Address, DelayingTransport] = {}
        self.sent: Counter[str] = Counter()
        self.requests_by: Counter[Address] = Counter()
        self.errors: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _loop, context: self.errors.append(context))

    async def create_datagram_endpoint(  # type: ignore[override]  # only what a DHT needs of it
        self, protocol_factory: Callable[[], Any], local_addr: tuple[str, int], **options: Any
    ) -> tuple[DelayingTransport, Any]:
        protocol = protocol_factory()
        between = _Between(self, protocol)
        await super().create_datagram_endpoint(lambda: between, local_addr=local_addr, **options)
        self.endpoints[between.transport.address] = between.transport
        return between.transport, protocol

    def count(self, data: bytes, source: Address) -> None:
        """A datagram is sent."""
        answer = data[:1] == b"\x01"
        self.sent["answers" if answer else "requests"] += 1
        self.sent["bytes"] += len(data)
        if not answer:
            self.requests_by[source] += 1

    def silence(self, address: Address) -> None:
        """Whoever is there hears and says nothing any more; nobody is told."""
        self.endpoints[address].close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """As `asyncio.run`, but sockets stay open afterwards."""
        asyncio.set_event_loop(self)
        try:
            return self.run_until_complete(coroutine)
        finally:
            asyncio.set_event_loop(None)
