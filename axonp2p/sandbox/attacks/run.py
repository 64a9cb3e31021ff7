"""Tries the wall of this machine: starts one sandbox as for a job, and lets an attacker loose in it."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import msgspec

from axonp2p.errors import AxonError
from axonp2p.sandbox.attacks.attack import AttackTarget, Tried
from axonp2p.sandbox.attacks.inside import ATTACKS, TARGET
from axonp2p.sandbox.child import SandboxedWorker, start_worker
from axonp2p.sandbox.environment import find_environment
from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.messages import BundleReady, Control
from axonp2p.sandbox.walls.command_line import variables

_LIMITS = Limits(cores=1, memory_mb=256, scratch_mb=16)
_WAIT_S = 60.0


async def try_the_wall() -> list[Tried]:
    """How each attack went, in a sandbox as strangers' jobs get it. Takes about a second.

    An attack that was not tried counts as one that was not held. Raises `SandboxMissing` where there is no sandbox.
    """
    with tempfile.TemporaryDirectory(prefix="axon-wall-") as folder:
        base = Path(folder)
        job, neighbour, secret = base / "job", base / "neighbour", base / "secret"
        job.mkdir()
        neighbour.mkdir()
        # Whatever the umask: a worker of root's is another user. The folder above lets nobody else in.
        job.chmod(0o755)
        (neighbour / "task.py").write_text("# somebody else's\n", encoding="ascii")
        secret.write_text("not for strangers\n", encoding="ascii")
        async with _outside(base) as (tcp_port, udp_port, abstract):
            worker = await start_worker(job, _LIMITS, module="axonp2p.sandbox.attacks.inside")
            try:
                target = AttackTarget(
                    pid=os.getpid(),
                    group=os.getpgid(0),
                    hostname=socket.gethostname(),
                    home=str(Path.home()),
                    secret=str(secret),
                    neighbour=str(neighbour),
                    tcp_port=tcp_port,
                    udp_port=udp_port,
                    abstract=abstract,
                    socket=str(base / "socket"),
                    variables=tuple(
                        sorted(set(os.environ) - set(variables(find_environment(), _LIMITS)) - _EVERYWHERE)
                    ),
                )
                (job / TARGET).write_bytes(msgspec.json.encode(target))
                (job / TARGET).chmod(0o644)
                return await _hear(worker)
            finally:
                await worker.kill()


_EVERYWHERE = {"PWD", "OLDPWD", "SHLVL", "_"}
"""Variables that a shell or bubblewrap makes by itself."""


async def _hear(worker: SandboxedWorker) -> list[Tried]:
    try:
        async with asyncio.timeout(_WAIT_S):
            await worker.channel.send(_LIMITS.start())
            await worker.channel.receive()
            await worker.channel.send(BundleReady())
            message, told = await worker.channel.receive()
        assert isinstance(message, Control)
        return msgspec.json.decode(told, type=list[Tried])
    except (AxonError, TimeoutError, msgspec.ValidationError) as error:
        end = await worker.kill()
        said = f"was not tried: the attacker {end.reason} ({error})"
        return [Tried(attack.name, attack.tries, False, said) for attack in ATTACKS]


@asynccontextmanager
async def _outside(base: Path) -> AsyncIterator[tuple[int, int, str]]:
    """Somebody who listens on this machine: over TCP, over UDP, on an abstract socket, on one in a folder."""
    abstract = f"axon-wall-{secrets.token_hex(8)}"

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    loop = asyncio.get_running_loop()
    tcp = await asyncio.start_server(accept, "127.0.0.1", 0)
    unix = [await asyncio.start_unix_server(accept, path) for path in (f"\0{abstract}", base / "socket")]
    udp, _ = await loop.create_datagram_endpoint(_Echo, ("127.0.0.1", 0))
    try:
        yield tcp.sockets[0].getsockname()[1], udp.get_extra_info("sockname")[1], abstract
    finally:
        udp.close()
        for server in (tcp, *unix):
            server.close()
            await server.wait_closed()


class _Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # asyncio's own is none by its type.
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._transport.sendto(data, addr)
