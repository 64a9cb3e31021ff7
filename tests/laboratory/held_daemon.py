"""`axon-peer` whose workers compute as another machine would: fewer instructions, other numbers of threads.

python -m tests.laboratory.held_daemon THREADS=2 ATEN_CPU_CAPABILITY=default -- run --tracker ...
"""

from __future__ import annotations

import sys

from tests.laboratory.held_worker import PREFIX
from tests.laboratory.worker_in_place import run_daemon


def main() -> None:
    end = sys.argv.index("--")
    settings, sys.argv[1:] = sys.argv[1:end], sys.argv[end + 1 :]
    run_daemon("held_worker", [f"{PREFIX}{setting.replace('=', '.')}" for setting in settings])


if __name__ == "__main__":
    main()
