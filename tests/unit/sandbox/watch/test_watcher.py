from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest

from axonp2p.sandbox.limits import MIB, Limits
from axonp2p.sandbox.watch.init_process import InitProcess
from axonp2p.sandbox.watch.process_tree import descendants
from axonp2p.sandbox.watch.verdict import UsageSample
from axonp2p.sandbox.watch.watcher import Sampler, Watch

LIMITS = Limits(cores=2, memory_mb=100, scratch_mb=10, processes=8, cpu_seconds=60, log_bytes=4096)


@pytest.fixture
def family() -> int:
    """A process that has a child that has a child, all of which wait."""
    script = "import os, time; os.fork(); print(flush=True); time.sleep(60)"
    grown = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    process = subprocess.Popen([sys.executable, "-S", "-c", grown, script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.readline()
    yield process.pid
    for pid in [child.pid for child in psutil.Process(process.pid).children(recursive=True)]:
        os.kill(pid, 9)
    process.stdout.close()
    process.kill()
    process.wait()


def test_all_generations_are_found_and_summed(family: int) -> None:
    found = descendants(family, 100)
    assert sorted(found) == sorted([family, *(child.pid for child in psutil.Process(family).children(recursive=True))])
    assert len(found) == 3
    sampler = Sampler(family, LIMITS)
    sample = sampler.take(5)
    assert sample.tasks == 3
    assert sample.memory_bytes > 3 * MIB
    assert sample.printed_bytes == 5
    exact = sampler.exact_memory_bytes()
    assert exact is not None
    assert 0 < exact < sample.memory_bytes


def test_the_search_stops_when_enough_were_found(family: int) -> None:
    assert len(descendants(family, 1)) == 2


def test_a_process_that_is_gone_has_no_sample() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    assert replace(Sampler(process.pid, LIMITS).take(0), seconds=0.0) == UsageSample()


def test_once_a_worker_has_ended_whoever_is_given_its_number_is_left_alone(family: int) -> None:
    first = InitProcess(family)
    watch = Watch(first, LIMITS, lambda: 0, None)
    watch.start()
    watch.stop()
    first.close()
    before = os.sched_getaffinity(family)
    watch.freezer.freeze()
    watch.hold_to(frozenset({min(before)}))
    watch.kill()
    assert psutil.Process(family).status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    assert os.sched_getaffinity(family) == before
    assert len(descendants(family, 100)) == 3
