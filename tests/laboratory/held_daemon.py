"""`axon-peer` whose workers compute as another machine would: fewer instructions, other numbers of threads.

python -m tests.laboratory.held_daemon THREADS=2 ATEN_CPU_CAPABILITY=default -- run --tracker ...
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from axonp2p.sandbox import child
from axonp2p.sandbox.child import SandboxedWorker
from axonp2p.sandbox.limits import Limits
from tests.laboratory.held_worker import PREFIX

FOLDER = Path(__file__).parent


def main() -> None:
    end = sys.argv.index("--")
    settings, sys.argv[1:] = sys.argv[1:end], sys.argv[end + 1 :]
    shown = {"held": FOLDER, **{f"{PREFIX}{setting.replace('=', '.')}": FOLDER for setting in settings}}
    start_plain = child.start_worker

    async def start_held(job_folder: Path, limits: Limits, *, data: Mapping[str, Path]) -> SandboxedWorker:
        return await start_plain(
            job_folder, limits, module="held_worker", python_path=("/data/held",), data={**data, **shown}
        )

    # Whatever is imported from here on has it from there.
    child.start_worker = start_held  # type: ignore[assignment]
    from peer_daemon.main import main as run

    run()


if __name__ == "__main__":
    main()
