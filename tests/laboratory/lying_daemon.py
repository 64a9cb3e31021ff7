"""`axon-peer` whose workers lie: daemon and sandbox are the real ones, and what runs inside is `lying_worker`.

python -m tests.laboratory.lying_daemon "sign flip" run --tracker ...
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from axonp2p.sandbox import child
from axonp2p.sandbox.child import SandboxedWorker
from axonp2p.sandbox.limits import Limits

FOLDER = Path(__file__).parent


def main() -> None:
    attack = sys.argv.pop(1)
    start_honest = child.start_worker

    async def start_lying(job_folder: Path, limits: Limits, *, data: Mapping[str, Path]) -> SandboxedWorker:
        shown = {"lies": FOLDER, f"way-{attack.replace(' ', '-')}": FOLDER}
        return await start_honest(
            job_folder, limits, module="lying_worker", python_path=("/data/lies",), data={**data, **shown}
        )

    # Whatever is imported from here on has it from there.
    child.start_worker = start_lying  # type: ignore[assignment]
    from peer_daemon.main import main as run

    run()


if __name__ == "__main__":
    main()
