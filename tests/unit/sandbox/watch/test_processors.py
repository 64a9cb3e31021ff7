from __future__ import annotations

import os
import subprocess
import sys

from axonp2p.sandbox.watch.priority import processors_taken
from axonp2p.sandbox.watch.processors import processors_for


def test_two_workers_share_no_processor_while_another_is_free() -> None:
    assert processors_for(1, range(4), {}) == {3}
    assert processors_for(2, range(4), {3: 1}) == {1, 2}
    assert processors_for(2, range(4), {3: 1, 2: 1, 1: 1}) == {0, 3}


def test_more_cores_than_there_are_is_all_of_them() -> None:
    assert processors_for(64, {0, 5}, {}) == {0, 5}


def test_workers_of_other_daemons_are_seen_and_ones_own_are_not() -> None:
    allowed = os.sched_getaffinity(0)
    last = max(allowed)
    before = processors_taken(allowed).get(last, 0)
    sleeps = "import os, sys; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)); print(flush=True); input()"
    worker = subprocess.Popen([sys.executable, "-c", sleeps], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        assert processors_taken(allowed).get(last, 0) == before
        os.sched_setaffinity(worker.pid, {last})
        others = len(allowed) > 1  # on a machine with one processor nobody is held on fewer
        assert processors_taken(allowed).get(last, 0) == before + others
        assert processors_taken(allowed, {worker.pid}).get(last, 0) == before
        worker.kill()
