"""A D-Bus connection that asks politely: it starts no service, and waits for no answer longer than a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

_ANSWER_S = 1.0
_BUS = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")


class BusSilent(Exception):
    """The connection cannot be made, or is lost."""


class Bus:
    """One bus by its address. Without an address every question stays without an answer."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._bus: MessageBus | None = None

    async def connect(self) -> None:
        """Raises `BusSilent`."""
        if not self._address:
            return
        # Only here, for it costs 4 MB: most servers have no bus worth asking.
        from dbus_fast.aio import MessageBus

        try:
            async with asyncio.timeout(5 * _ANSWER_S):
                self._bus = await MessageBus(bus_address=self._address).connect()
        except Exception as error:  # the library has as many kinds as there are ways not to be let in
            raise BusSilent(f"{self._address}: {error or type(error).__name__}") from error

    def close(self) -> None:
        """Leave the bus."""
        if self._bus is not None and self._bus.connected:
            self._bus.disconnect()
        self._bus = None

    async def call(self, service: str, path: str, interface: str, member: str, kinds: str = "", *values: Any) -> Any:
        """The first value that `member` answers; None when nobody answers, or with an error. Raises `BusSilent`."""
        if self._bus is None:
            return None
        from dbus_fast import Message, MessageFlag, MessageType

        if not self._bus.connected:
            raise BusSilent(f"{self._address}: the connection is lost")
        question = Message(
            destination=service,
            path=path,
            interface=interface,
            member=member,
            signature=kinds,
            body=list(values),
            flags=MessageFlag.NO_AUTOSTART,
        )
        try:
            async with asyncio.timeout(_ANSWER_S):
                answer = await self._bus.call(question)
        except TimeoutError:
            return None
        except Exception as error:
            raise BusSilent(f"{self._address}: {error}") from error
        if answer is None or answer.message_type is not MessageType.METHOD_RETURN or not answer.body:
            return None
        return answer.body[0]

    async def get(self, service: str, path: str, interface: str, name: str) -> Any:
        """A property's value, or None. Raises `BusSilent`."""
        found = await self.call(service, path, "org.freedesktop.DBus.Properties", "Get", "ss", interface, name)
        return getattr(found, "value", None)

    async def listen(self, interface: str, member: str, heard: Callable[[], None]) -> None:
        """Call `heard` at each such signal. Raises `BusSilent`."""
        if self._bus is None:
            return

        def handle(message: Message) -> None:
            if message.interface == interface and message.member == member:
                heard()

        self._bus.add_message_handler(handle)
        await self.call(*_BUS, "AddMatch", "s", f"type='signal',interface='{interface}',member='{member}'")
