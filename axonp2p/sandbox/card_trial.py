"""Tries whether a job can compute on a card: starts CUDA in a sandbox that has it, as the first step of a job does.

The wall may hold and yet keep out what a driver needs, as it did until a real card was tried (docs/decisions/0071).
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path

from axonp2p.errors import Unreachable
from axonp2p.sandbox.attacks.run import only_answer
from axonp2p.sandbox.child import start_worker
from axonp2p.sandbox.gpu_access import GpuAccess
from axonp2p.sandbox.inside import begin_trial
from axonp2p.sandbox.limits import Limits, Priority
from axonp2p.sandbox.messages import Control

_SAID = 300
"""Bytes of the answer that are believed."""


async def why_no_cuda(gpu: GpuAccess, priority: Priority = "idle") -> str:
    """Why no job can compute on this card, as a sentence; empty where one can. Takes one or two seconds.

    Raises `SandboxMissing`.
    """
    limits = Limits(cores=1, memory_mb=2048, scratch_mb=64, gpu=gpu, priority=priority)
    with tempfile.TemporaryDirectory(prefix="axon-card-") as folder:
        os.chmod(folder, 0o755)  # noqa: S103  a worker of root's is another user
        worker = await start_worker(Path(folder), limits, program=__name__)
        try:
            return await only_answer(worker, limits, lambda said: bytes(said[:_SAID]).decode(errors="replace"))
        except Unreachable as error:
            return f"the trial {error}"


def main() -> None:
    """The sandbox's part."""
    channel, _ = begin_trial()
    channel.send(Control(), _why_not().encode())


def _why_not() -> str:
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"its library cannot be loaded: {error}"
    if error_number := cuda.cuInit(0):
        return f"CUDA does not start (error {error_number} of cuInit)"
    cards = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(cards))
    return "" if cards.value == 1 else f"CUDA finds {cards.value} cards where one was given"


if __name__ == "__main__":
    main()
