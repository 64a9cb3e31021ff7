from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from axonp2p.sandbox.limits import Priority
from axonp2p.sandbox.watch.priority import lower


@pytest.mark.parametrize(
    ("priority", "scheduling", "nice", "files"),
    [
        ("idle", os.SCHED_IDLE, 19, psutil.IOPRIO_CLASS_IDLE),
        ("low", os.SCHED_BATCH, 10, psutil.IOPRIO_CLASS_BE),
        ("normal", os.SCHED_BATCH, 0, psutil.IOPRIO_CLASS_NONE),
    ],
)
def test_a_job_has_its_owners_priority_and_is_the_first_to_end_without_memory(
    priority: Priority, scheduling: int, nice: int, files: int
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        before = psutil.Process(child.pid).nice()
        lower(child.pid, priority)
        assert os.sched_getscheduler(child.pid) == scheduling
        assert psutil.Process(child.pid).nice() == (nice or before)
        assert psutil.Process(child.pid).ionice().ioclass == files
        assert Path(f"/proc/{child.pid}/oom_score_adj").read_text() == "1000\n"
        child.kill()
