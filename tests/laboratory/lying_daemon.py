"""`axon-peer` whose workers lie: daemon and sandbox are the real ones, and what runs inside is another program.

python -m tests.laboratory.lying_daemon "sign flip" run --tracker ...    `lying_worker`, about what it trained
python -m tests.laboratory.lying_daemon "adds 7" run --tracker ...       `lying_calls`, about the results of calls
"""

from __future__ import annotations

import sys

from tests.laboratory.worker_in_place import run_daemon


def main() -> None:
    attack = sys.argv.pop(1).replace(" ", "-")
    if attack.startswith("adds-"):
        run_daemon("lying_calls", [attack])
    else:
        run_daemon("lying_worker", [f"way-{attack}"])


if __name__ == "__main__":
    main()
