from __future__ import annotations

import resource

from axonp2p.sandbox.limits import MIB, Limits, kernel_limits, task_limit

LIMITS = Limits(cores=2, memory_mb=512, scratch_mb=64)


def test_the_start_message_says_the_limits() -> None:
    start = Limits(cores=3, memory_mb=512, scratch_mb=64, processes=7, open_files=99, cpu_seconds=60).start()
    assert (start.cores, start.memory_mb, start.file_mb) == (3, 512, 64)
    assert (start.processes, start.open_files, start.cpu_seconds) == (7, 99, 60)
    assert not start.executes
    assert Limits(cores=1, memory_mb=1, scratch_mb=1, executes=True).start().executes


def test_every_kernel_limit_follows_from_the_message() -> None:
    found = dict(kernel_limits(LIMITS.start(), (6, 1)))
    assert found[resource.RLIMIT_DATA] == (512 + 256 + 32) * MIB
    assert found[resource.RLIMIT_FSIZE] == 64 * MIB
    assert found[resource.RLIMIT_NOFILE] == 256
    assert found[resource.RLIMIT_CORE] == 0
    assert found[resource.RLIMIT_SIGPENDING] == 1024
    assert found[resource.RLIMIT_NPROC] == task_limit(64, 2) + 8 == 80
    assert resource.RLIMIT_CPU not in found


def test_processor_time_is_cut_by_the_kernel_a_little_after_the_watch() -> None:
    start = Limits(cores=1, memory_mb=1, scratch_mb=1, cpu_seconds=60).start()
    assert dict(kernel_limits(start, (6, 1)))[resource.RLIMIT_CPU] == 65


def test_a_kernel_that_counts_processes_outside_too_is_not_asked_to_count() -> None:
    assert resource.RLIMIT_NPROC not in dict(kernel_limits(LIMITS.start(), (5, 10)))
    assert resource.RLIMIT_NPROC in dict(kernel_limits(LIMITS.start(), (5, 14)))
