from __future__ import annotations

import os
import subprocess
import sys

from axonp2p.sandbox.watch.priority import processors_taken
from axonp2p.sandbox.watch.processors import ProcessorTime, ahead_of_cores, parse_ticks, processors_for
from axonp2p.sandbox.watch.verdict import SPARE_CORE_SECONDS


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


PARENT, CHILD, OTHER = (1, 10), (2, 20), (3, 30)


def test_a_child_that_was_waited_for_counts_once() -> None:
    time = ProcessorTime()
    assert time.add({PARENT: (5, 0), CHILD: (7, 0)}) == 12
    assert time.add({PARENT: (5, 8)}) == 13


def test_a_child_that_nobody_waited_for_counts_as_last_seen() -> None:
    time = ProcessorTime()
    time.add({PARENT: (5, 0), CHILD: (7, 0)})
    assert time.add({PARENT: (5, 0), OTHER: (6, 0)}) == 18
    assert time.add({PARENT: (6, 0)}) == 19


def test_processor_time_never_shrinks_when_a_number_is_given_again() -> None:
    time = ProcessorTime()
    time.add({PARENT: (5, 0), (2, 20): (7, 0)})
    assert time.add({PARENT: (5, 0), (2, 44): (1, 0)}) == 13


def test_a_moment_of_more_threads_than_cores_is_no_offence() -> None:
    ahead = ahead_of_cores(0.0, cpu_seconds=11.0, seconds=1.0, cores=2)
    assert 0 < ahead <= SPARE_CORE_SECONDS
    assert ahead_of_cores(ahead, cpu_seconds=8.0, seconds=5.0, cores=2) < ahead


def test_cores_that_were_not_used_are_not_saved_up() -> None:
    waited_for_an_hour = ahead_of_cores(0.0, cpu_seconds=0.0, seconds=3600.0, cores=2)
    assert ahead_of_cores(waited_for_an_hour, cpu_seconds=40.0, seconds=10.0, cores=2) == 19.0


def test_a_frozen_job_spends_neither_time_nor_cores() -> None:
    assert ahead_of_cores(9.0, cpu_seconds=0.0, seconds=0.0, cores=2) == 9.0


def test_own_time_and_that_of_children_are_told_apart_and_no_name_confuses_it() -> None:
    fields = " ".join(str(number) for number in range(4, 30))
    assert parse_ticks(f"7 (a) R 1 (b c) R {fields}") == (14 + 15, 16 + 17)
