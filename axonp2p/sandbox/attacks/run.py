"""Tries the wall of this machine: starts one sandbox as for a job, and lets an attacker loose in it."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import msgspec

from axonp2p.errors import AxonError, Unreachable
from axonp2p.sandbox.attacks.attack import Attack, AttackTarget, Tried
from axonp2p.sandbox.attacks.each_wall import ATTACKS
from axonp2p.sandbox.attacks.inside import TARGET
from axonp2p.sandbox.attacks.with_gpu import GPU_ATTACKS
from axonp2p.sandbox.child import SandboxedWorker, start_worker
from axonp2p.sandbox.environment import find_environment
from axonp2p.sandbox.gpu_access import GpuAccess
from axonp2p.sandbox.limits import Limits, Priority
from axonp2p.sandbox.messages import BundleReady, Control
from axonp2p.sandbox.walls.command_line import variables

LIMITS = Limits(cores=1, memory_mb=256, scratch_mb=16)
"""Of the sandbox that is attacked from within."""
_WAIT_S = 60.0
_Answer = TypeVar("_Answer")
_EVERYWHERE = {"PWD", "OLDPWD", "SHLVL", "_"}
"""Variables that a shell or bubblewrap makes by itself."""


async def try_the_wall(gpu: GpuAccess | None = None, priority: Priority = "idle") -> list[Tried]:
    """How each attack went, in a sandbox as strangers' jobs get it, with this GPU if there is one. Takes a second.

    `priority` is theirs on this machine: at the lowest, nothing comes of it while other programs use all processors.
    An attack that was not tried counts as one that was not held. Raises `SandboxMissing` where there is no sandbox.
    """
    limits = replace(LIMITS, gpu=gpu, priority=priority)
    attacks = (*ATTACKS, *GPU_ATTACKS) if gpu else ATTACKS
    async with attacked_machine(limits) as (job, _):
        return await hear(await start_worker(job, limits, program="axonp2p.sandbox.attacks.inside"), attacks, limits)


@asynccontextmanager
async def attacked_machine(limits: Limits = LIMITS) -> AsyncIterator[tuple[Path, AttackTarget]]:
    """The attacker's job folder, and what lies outside of it to be attacked."""
    with tempfile.TemporaryDirectory(prefix="axon-wall-") as folder:
        base = Path(folder)
        job, secret = base / "job", base / "secret"
        job.mkdir()
        # Whatever the umask: a worker of root's is another user. The folder above lets nobody else in.
        job.chmod(0o755)
        secret.write_text("not for strangers\n", encoding="ascii")
        abstract = f"axon-wall-{secrets.token_hex(8)}"

        async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        async with (
            await asyncio.start_server(accept, "127.0.0.1", 0) as tcp,
            await asyncio.start_unix_server(accept, f"\0{abstract}"),
        ):
            inside = set(variables(find_environment(), limits)) | _EVERYWHERE
            target = AttackTarget(
                pid=os.getpid(),
                hostname=socket.gethostname(),
                home=str(Path.home()),
                secret=str(secret),
                port=tcp.sockets[0].getsockname()[1],
                abstract=abstract,
                variables=tuple(sorted(set(os.environ) - inside)),
                gpu_nodes=tuple(limits.start().devices),
            )
            (job / TARGET).write_bytes(msgspec.json.encode(target))
            (job / TARGET).chmod(0o644)
            yield job, target


async def hear(worker: SandboxedWorker, attacks: Sequence[Attack], limits: Limits = LIMITS) -> list[Tried]:
    """The report of a worker that makes these attacks; it is ended then."""
    try:
        return await only_answer(worker, limits, lambda told: msgspec.json.decode(told, type=list[Tried]))
    except Unreachable as error:
        said = f"was not tried: the attacker {error}"
        return [Tried(attack.name, attack.tries, False, said) for attack in attacks]


async def only_answer(worker: SandboxedWorker, limits: Limits, read: Callable[[memoryview], _Answer]) -> _Answer:
    """The one thing that a program says which tries the sandbox (`begin_trial`); it is ended then.

    Raises `Unreachable` where it says nothing, or what `read` does not take: how it ended, and why.
    """
    try:
        async with asyncio.timeout(_WAIT_S):
            await worker.channel.send(limits.start())
            await worker.channel.receive()
            await worker.channel.send(BundleReady())
            message, told = await worker.channel.receive()
        assert isinstance(message, Control)
        return read(told)
    except (AxonError, TimeoutError, msgspec.ValidationError) as error:
        end = await worker.kill()
        why = str(error) or f"nothing came of it in {_WAIT_S:g} s: this computer is busy"
        raise Unreachable(f"{end.reason} ({why})") from error
    finally:
        await worker.kill()
