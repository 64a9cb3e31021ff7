"""What the tests put beside that which `axon-peer doctor` puts outside of its sandbox, to be attacked as well."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from axonp2p.sandbox.attacks.attack import AttackTarget


def neighbour(target: AttackTarget) -> str:
    """The folder of another job, next to the attacker's."""
    return str(Path(target.secret).with_name("neighbour"))


def socket_in_a_folder(target: AttackTarget) -> str:
    """A Unix socket where somebody listens."""
    return str(Path(target.secret).with_name("socket"))


@asynccontextmanager
async def more_to_attack(target: AttackTarget) -> AsyncIterator[None]:
    """Another job's folder, a Unix socket in a folder, and somebody who sends back each datagram."""
    _make_neighbour(Path(neighbour(target)))

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_unix_server(accept, socket_in_a_folder(target))
    udp, _ = await asyncio.get_running_loop().create_datagram_endpoint(_Echo, ("127.0.0.1", target.port))
    async with server:
        try:
            yield
        finally:
            udp.close()


def _make_neighbour(folder: Path) -> None:
    folder.mkdir()
    (folder / "task.py").write_text("# somebody else's\n", encoding="ascii")


class _Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # asyncio's own is none by its type.
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._transport.sendto(data, addr)
