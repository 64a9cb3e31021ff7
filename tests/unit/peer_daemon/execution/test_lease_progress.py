from __future__ import annotations

from dataclasses import replace

import pytest

from peer_daemon.execution.lease_progress import (
    BUNDLE_BEGINS_S,
    BUNDLE_STALLS_S,
    IDLE_S,
    LEAST_BYTES_S,
    LEAST_CARRIED,
    LEAST_CPU_S,
    UNPAID_S,
    WORKS_WITHIN_S,
    LeaseLook,
    LeaseProgress,
)

NOTHING = LeaseLook(
    bundle_bytes=0, bundle_there=False, cpu_seconds=3.0, carried_bytes=0, receipts=0, stopped=False, away=False
)
BEGUN = replace(NOTHING, bundle_bytes=1000, bundle_there=True)
STEP_S = 10.0


class Watched:
    """A lease that is looked at every ten seconds."""

    def __init__(self) -> None:
        self.now = 5.0
        self.progress = LeaseProgress(self.now)

    def until_ended(self, seen_at, most_s: float = 30 * 3600) -> tuple[float, str]:
        """When it was ended, in seconds from now, and why; (most_s, "") when it was not."""
        began = self.now
        while self.now - began < most_s:
            self.now += STEP_S
            if why := self.progress.look(seen_at(self.now - began), self.now):
                return self.now - began, why
        return most_s, ""


def test_a_lease_without_a_bundle_ends_in_minutes():
    assert Watched().until_ended(lambda at: NOTHING) == (BUNDLE_BEGINS_S, "no bundle came within 6 min")


def test_a_bundle_that_stalls_ends_the_lease():
    watched = Watched()
    ended, why = watched.until_ended(lambda at: replace(NOTHING, bundle_bytes=min(1_000_000, int(at * 1e5))))
    assert (ended, why) == (STEP_S + BUNDLE_STALLS_S, "nothing more of its bundle came for 3 min")


def test_a_slow_line_is_given_the_time_that_its_bundle_takes():
    size = 512 * 2**20
    slow = Watched().until_ended(lambda at: replace(NOTHING, bundle_bytes=int(at * 1.1 * LEAST_BYTES_S)), size / 40_000)
    assert slow[1] == ""


def test_a_byte_now_and_then_keeps_no_slot():
    ended, why = Watched().until_ended(lambda at: replace(NOTHING, bundle_bytes=1 + int(at // 60)))
    assert ended <= BUNDLE_BEGINS_S + STEP_S
    assert why == "its bundle came at less than 32 KiB/s"


def test_a_worker_that_is_given_nothing_to_do_ends_the_lease():
    ended, why = Watched().until_ended(lambda at: replace(BEGUN, cpu_seconds=3 + at * 0.005))
    assert (ended, why) == (STEP_S + IDLE_S, "its client gave it nothing to do for 10 min")


@pytest.mark.parametrize(
    "working",
    [
        lambda at: replace(BEGUN, cpu_seconds=at * 1.5 * LEAST_CPU_S / IDLE_S, receipts=int(at // 600)),
        lambda at: replace(BEGUN, carried_bytes=int(at * 2 * LEAST_CARRIED / IDLE_S), receipts=int(at // 600)),
        lambda at: replace(BEGUN, cpu_seconds=at, receipts=int(at // (UNPAID_S - 60))),
    ],
    ids=["slowly", "an exchange over a slow line", "rounds of almost two hours"],
)
def test_a_lease_that_is_worked_and_paid_for_lives_on(working):
    assert Watched().until_ended(working)[1] == ""


def test_work_that_nobody_pays_for_ends_after_two_hours():
    watched = Watched()
    ended, why = watched.until_ended(lambda at: replace(BEGUN, cpu_seconds=at, carried_bytes=int(at * 1e6)))
    assert (ended, why) == (STEP_S + UNPAID_S, "no receipt came for 2 h of work")
    assert watched.progress.unpaid


def test_time_in_which_the_owner_stops_it_counts_for_nothing():
    watched = Watched()
    assert watched.until_ended(lambda at: replace(NOTHING, stopped=True), 3600)[1] == ""
    assert watched.until_ended(lambda at: replace(BEGUN, stopped=True))[1] == ""
    assert watched.until_ended(lambda at: BEGUN)[0] == IDLE_S


def test_a_client_that_comes_and_goes_keeps_no_slot_for_ever():
    watched = Watched()
    watched.until_ended(lambda at: BEGUN, STEP_S)
    ended, why = watched.until_ended(lambda at: replace(BEGUN, away=at % 600 > STEP_S))
    assert ended <= UNPAID_S
    assert why


def test_a_lease_is_idle_once_nothing_was_done_for_a_minute():
    watched = Watched()
    watched.until_ended(lambda at: BEGUN, STEP_S + WORKS_WITHIN_S - STEP_S)
    assert watched.progress.idle_s == 0
    watched.until_ended(lambda at: BEGUN, 2 * STEP_S)
    assert watched.progress.idle_s == WORKS_WITHIN_S + STEP_S
    watched.until_ended(lambda at: replace(BEGUN, cpu_seconds=60.0), STEP_S)
    assert watched.progress.idle_s == 0
