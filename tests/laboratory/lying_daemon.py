"""`axon-peer` whose workers lie: daemon and sandbox are the real ones, and what runs inside is `lying_worker`.

python -m tests.laboratory.lying_daemon "sign flip" run --tracker ...
"""

from __future__ import annotations

import sys

from tests.laboratory.worker_in_place import run_daemon


def main() -> None:
    attack = sys.argv.pop(1)
    run_daemon("lying_worker", [f"way-{attack.replace(' ', '-')}"])


if __name__ == "__main__":
    main()
