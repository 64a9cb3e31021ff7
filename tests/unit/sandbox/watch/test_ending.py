"""From how a worker ended to the words for it."""

from __future__ import annotations

import signal

import pytest

from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.watch.ending import Circumstances, ending
from axonp2p.sandbox.watch.verdict import LimitVerdict, UsageSample

LIMITS = Limits(cores=1, memory_mb=200, scratch_mb=16)


def ended(
    code: int,
    said: str = "",
    *,
    killed: bool = False,
    verdict: LimitVerdict | None = None,
    out_of_memory: bool = False,
    scratch_full: bool = False,
) -> tuple[str, str]:
    last = UsageSample(scratch_full=scratch_full)
    return ending(Circumstances(code, killed, verdict, out_of_memory, last, said), LIMITS)


def test_what_the_watch_found_comes_first() -> None:
    found = LimitVerdict("processes", "ran too many")
    assert ended(137, "MemoryError", killed=True, verdict=found) == ("ran too many", "processes")


def test_an_end_without_a_limit_says_how() -> None:
    assert ended(0) == ("ended with exit code 0", "")
    assert ended(3) == ("ended with exit code 3", "")
    assert ended(128 + 11) == ("ended by signal 11", "")
    assert ended(137) == ("was killed: perhaps this machine ran out of memory", "")
    assert ended(137, killed=True) == ("was ended by this peer", "")


def test_a_full_control_group_is_its_limit_of_memory() -> None:
    assert ended(137, out_of_memory=True) == ("used more than the 200 MiB of memory that are allowed", "memory")


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ("Traceback ...\nMemoryError\n", "memory"),
        ("RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried", "memory"),
        ("OSError: [Errno 28] No space left on device: '/tmp/x'", "disk"),
        ("OSError: [Errno 27] File too large", "disk"),
        ("OSError: [Errno 24] Too many open files: '/dev/null'", "files"),
        ("RuntimeError: can't start new thread", "processes"),
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable", "processes"),
    ],
)
def test_the_kernel_refused_it_more_and_its_last_words_name_of_what(said: str, limit: str) -> None:
    assert ended(1, said) == (f"ended with exit code 1 at its limit of {limit}", limit)


def test_words_of_a_job_that_ended_well_or_said_more_since_name_nothing() -> None:
    assert ended(0, "MemoryError")[1] == ""
    assert ended(1, "MemoryError\n" + "and then\n" * 3)[1] == ""


def test_a_job_that_failed_with_a_full_tmp_met_its_limit_of_disk() -> None:
    assert ended(1, "some library's own words", scratch_full=True)[1] == "disk"
    assert ended(0, scratch_full=True)[1] == ""


def test_signals_that_are_limits() -> None:
    assert ended(128 + signal.SIGXCPU)[1] == "cpu"
    assert ended(128 + signal.SIGXFSZ)[1] == "disk"
