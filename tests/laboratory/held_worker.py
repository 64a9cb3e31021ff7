"""The program in the sandbox of a machine that pretends to be an older one: the real worker, held to other settings.

Which ones say names in /data (`held_daemon`). Only what a sandbox has can be imported here.
"""

from __future__ import annotations

import os
from pathlib import Path

from axonp2p.training.worker import worker_main

PREFIX = "held-"
THREADS = "THREADS"
"""So many for torch, whatever the lease says; all other names are variables that torch reads when it is imported."""


def main() -> None:
    named = (path.name.removeprefix(PREFIX) for path in Path("/data").glob(f"{PREFIX}*"))
    settings = dict(name.split(".", 1) for name in named)
    prepare = worker_main.prepare_torch

    def prepare_held(cores: int) -> None:
        threads = int(settings.pop(THREADS, cores))
        prepare(threads)
        os.environ.update(settings)

        from axonp2p.training.worker import warm_up  # imports torch, which reads the variables

        plain = warm_up.use_threads
        warm_up.use_threads = lambda _: plain(threads)

    worker_main.prepare_torch = prepare_held
    worker_main.main()


if __name__ == "__main__":
    main()
