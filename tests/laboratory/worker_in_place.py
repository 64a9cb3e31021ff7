"""`axon-peer` with another program in its sandboxes: daemon and sandbox are the real ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from axonp2p.sandbox import child
from axonp2p.sandbox.child import SandboxedWorker
from axonp2p.sandbox.limits import Limits

FOLDER = Path(__file__).parent


def run_daemon(module: str, names: Iterable[str]) -> None:
    """Run `axon-peer` with the words of the command line; workers are `module` of this folder.

    A worker is told things by `names` that it sees in /data.
    """
    shown = dict.fromkeys(["laboratory", *names], FOLDER)
    start_plain = child.start_worker

    async def start(
        job_folder: Path, limits: Limits, *, program: str, data: Mapping[str, Path], blobs: Path
    ) -> SandboxedWorker:
        shows = {**data, **shown}
        return await start_plain(
            job_folder, limits, program=module, python_path=("/data/laboratory",), data=shows, blobs=blobs
        )

    # Whatever is imported from here on has it from there.
    child.start_worker = start  # type: ignore[assignment]
    from peer_daemon.main import main

    main()
