"""The program in the sandbox: `python -s -P -m axonp2p.training.worker.worker_main FD`.

It lays its limits on itself, then loads torch and touches what is slow the first time, so that all of this is done
while the bundle still travels, or, where the daemon has it stand by, before there is a lease.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from axonp2p.sandbox.inside import Inside, serve_daemon
from axonp2p.sandbox.messages import Start, Started
from axonp2p.training.worker.late_compiler import load_late

BUNDLE = Path("/job")
SCRATCH = Path("/tmp")  # noqa: S108  the sandbox's own

# Busy machines: OpenMP's threads must sleep when they wait for each other, not spin (measured: 100 times slower).
_OPENMP = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}


def main() -> None:
    """Run until the daemon closes the channel."""
    serve_daemon(serve, load)


def load(cores: int) -> None:
    """Load all that a worker is made of, and take a step of nothing on this many cores.

    Raises `SettingsError` where a card was given that this torch cannot use.
    """
    prepare_torch(cores)

    from axonp2p.training.trainer.device import CPU, chosen_device
    from axonp2p.training.worker import worker  # noqa: F401  it loads the rest of the room
    from axonp2p.training.worker.warm_up import warm_up

    # With a card in reach any backward pass starts torch's threads for cards, and what is forked then has none.
    if chosen_device(os.environ) == CPU:
        warm_up()


def serve(inside: Inside, start: Start) -> None:
    """Work, once all is loaded. Raises what ended the channel, `MalformedMessage`, or `SettingsError`: no card."""
    os.chdir(BUNDLE)  # what a task opens by its name lies there

    from axonp2p.training.trainer.device import chosen_device, open_device
    from axonp2p.training.worker.mailbox import Mailbox
    from axonp2p.training.worker.out_folder import OutFolder
    from axonp2p.training.worker.redo_server import RedoServer
    from axonp2p.training.worker.warm_up import use_threads, warm_up
    from axonp2p.training.worker.worker import FromTrainer, Worker

    device = chosen_device(os.environ)
    out = OutFolder(SCRATCH)
    out.make()
    redo_server = RedoServer(start.cores, out, memory_mb=start.memory_mb)
    open_device(device)  # what is forked after it could use no card
    if device.type != "cpu":
        warm_up(device)
    use_threads(start.cores)
    mailbox: Mailbox[FromTrainer] = Mailbox(inside)
    mailbox.open()
    mailbox.say(Started())
    try:
        Worker(mailbox, BUNDLE, out.own, time.monotonic, redo_server.for_job, device).run()
    finally:
        mailbox.flush()


def prepare_torch(cores: int) -> None:
    """The settings that torch finds when it is imported: how many threads it may have, and no compiler yet."""
    os.environ.update(_OPENMP, OMP_NUM_THREADS=str(cores))
    load_late()


if __name__ == "__main__":
    main()
