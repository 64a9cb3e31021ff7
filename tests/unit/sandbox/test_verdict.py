from __future__ import annotations

from dataclasses import replace

import pytest

from axonp2p.sandbox.limits import MIB, Limits
from axonp2p.sandbox.verdict import Sample, ahead_of_cores, parse_exact, parse_status, parse_ticks, verdict

LIMITS = Limits(cores=2, memory_mb=100, scratch_mb=10, processes=8, cpu_seconds=60, wall_seconds=90, log_bytes=4096)
AT_THE_LIMIT = Sample(
    memory_bytes=100 * MIB,
    tasks=16,
    cpu_seconds=60.0,
    seconds=90.0,
    ahead_seconds=10.0,
    files=1000 + 64 * 10,
    printed_bytes=4096 * 1024,
)


def test_what_is_at_its_limits_may_go_on() -> None:
    assert verdict(AT_THE_LIMIT, LIMITS) is None


@pytest.mark.parametrize(
    ("limit", "change", "words"),
    [
        ("memory", {"memory_bytes": 101 * MIB}, "used 101 MiB of memory where 100 MiB are allowed"),
        ("processes", {"tasks": 17}, "more than the 16 processes and threads"),
        ("cpu", {"cpu_seconds": 60.1}, "more than the 60 s of processor time"),
        ("cores", {"ahead_seconds": 10.1}, "kept more cores busy than the 2 that are allowed"),
        ("time", {"seconds": 90.1}, "ran longer than the 90 s"),
        ("files", {"files": 1641}, "more than the 1640 files"),
        ("output", {"printed_bytes": 4096 * 1024 + 1}, "more than the 4 MiB"),
    ],
)
def test_each_limit_is_named_when_it_is_passed(limit: str, change: dict[str, int], words: str) -> None:
    found = verdict(replace(AT_THE_LIMIT, **change), LIMITS)
    assert found is not None
    assert found.limit == limit
    assert words in found.reason


def test_time_has_no_limit_unless_one_is_set() -> None:
    assert verdict(Sample(cpu_seconds=1e9, seconds=1e9), replace(LIMITS, cpu_seconds=0, wall_seconds=0)) is None


def test_a_moment_of_more_threads_than_cores_is_no_offence() -> None:
    ahead = ahead_of_cores(0.0, cpu_seconds=11.0, seconds=1.0, cores=2)
    assert verdict(Sample(ahead_seconds=ahead), LIMITS) is None
    assert ahead_of_cores(ahead, cpu_seconds=8.0, seconds=5.0, cores=2) < ahead


def test_cores_that_were_not_used_are_not_saved_up() -> None:
    waited_for_an_hour = ahead_of_cores(0.0, cpu_seconds=0.0, seconds=3600.0, cores=2)
    assert ahead_of_cores(waited_for_an_hour, cpu_seconds=40.0, seconds=10.0, cores=2) == 19.0


def test_a_frozen_job_spends_neither_time_nor_cores() -> None:
    assert ahead_of_cores(9.0, cpu_seconds=0.0, seconds=0.0, cores=2) == 9.0


STATUS = """\
Name:\tRssAnon: 99 kB
VmRSS:\t  329536 kB
RssAnon:\t  2048 kB
RssFile:\t  103336 kB
RssShmem:\t  1024 kB
VmSwap:\t  512 kB
Threads:\t3
"""


def test_memory_is_what_is_no_cache_of_a_file() -> None:
    assert parse_status(STATUS) == ((2048 + 1024 + 512) * 1024, 3)


def test_a_process_that_has_ended_uses_nothing() -> None:
    assert parse_status("Name:\tpython\nState:\tZ (zombie)\nThreads:\t1\n") == (0, 1)


def test_processor_time_includes_ended_children_and_no_name_confuses_it() -> None:
    fields = " ".join(str(number) for number in range(4, 30))
    assert parse_ticks(f"7 (a) R 1 (b c) R {fields}") == 14 + 15 + 16 + 17


def test_the_exact_sum_shares_pages() -> None:
    text = "Rss: 9999 kB\nPss: 5000 kB\nPss_Anon: 100 kB\nPss_File: 4000 kB\nPss_Shmem: 20 kB\nSwapPss: 3 kB\n"
    assert parse_exact(text) == 123 * 1024
