from __future__ import annotations

from dataclasses import replace

import pytest

from axonp2p.sandbox.limits import MIB, Limits
from axonp2p.sandbox.watch.verdict import (
    SOCKETS,
    UsageSample,
    parse_exact,
    parse_page_tables,
    parse_sockets,
    parse_status,
    verdict,
)

LIMITS = Limits(cores=2, memory_mb=100, scratch_mb=10, processes=8, cpu_seconds=60, wall_seconds=90, log_bytes=4096)
AT_THE_LIMIT = UsageSample(
    memory_bytes=100 * MIB,
    tasks=16,
    cpu_seconds=60.0,
    seconds=90.0,
    ahead_seconds=10.0,
    files=1000 + 64 * 10,
    printed_bytes=4096 * 64 + 90 * 256 * 1024,
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
        ("files", {"sockets": SOCKETS + 1}, "more than the 128 sockets"),
        ("output", {"printed_bytes": 4096 * 64 + 90 * 256 * 1024 + 1}, "more than the 22 MiB"),
    ],
)
def test_each_limit_is_named_when_it_is_passed(limit: str, change: dict[str, int], words: str) -> None:
    found = verdict(replace(AT_THE_LIMIT, **change), LIMITS)
    assert found is not None
    assert found.limit == limit
    assert words in found.reason


def test_time_has_no_limit_unless_one_is_set() -> None:
    assert verdict(UsageSample(cpu_seconds=1e9, seconds=1e9), replace(LIMITS, cpu_seconds=0, wall_seconds=0)) is None


STATUS = """\
Name:\tRssAnon: 99 kB
VmRSS:\t  329536 kB
RssAnon:\t  2048 kB
RssFile:\t  103336 kB
RssShmem:\t  1024 kB
VmPTE:\t  64 kB
VmSwap:\t  512 kB
Threads:\t3
"""


def test_memory_is_what_is_no_cache_of_a_file() -> None:
    assert parse_status(STATUS) == ((2048 + 1024 + 64 + 512) * 1024, 3)


def test_a_process_that_has_ended_uses_nothing() -> None:
    assert parse_status("Name:\tpython\nState:\tZ (zombie)\nThreads:\t1\n") == (0, 1)


def test_sockets_are_those_of_all_kinds() -> None:
    assert parse_sockets("sockets: used 7\nTCP: inuse 2 orphan 0 tw 0 alloc 2 mem 0\n") == 7
    assert parse_sockets("") == 0


def test_the_exact_sum_shares_pages() -> None:
    text = "Rss: 9999 kB\nPss: 5000 kB\nPss_Anon: 100 kB\nPss_File: 4000 kB\nPss_Shmem: 20 kB\nSwapPss: 3 kB\n"
    assert parse_exact(text) == 123 * 1024


def test_page_tables_are_counted_where_shared_pages_are_not_counted_twice() -> None:
    assert parse_page_tables("VmRSS:\t  900 kB\nVmPTE:\t   12 kB\n") == 12 * 1024
    assert parse_page_tables("Name:\tended\n") == 0
