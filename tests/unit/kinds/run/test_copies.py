"""Which copy runs where, in conversation: what the machine hears, and when, is up to the test."""

from __future__ import annotations

from typing import Any

import pytest

from axonp2p.kinds.run.copies import CopyScheduler
from axonp2p.kinds.run.copy_actions import CopiesPlan, CopyAction, KeepResult, StartCopy, StopCopy


class Conversation:
    """A job's copies, with a clock that only the test moves. Copies end as (rank, index, attempt) says."""

    def __init__(self, copies: int, peers: int, **plan: Any) -> None:
        self.now = 100.0
        self.copies = CopyScheduler(CopiesPlan(copies, **plan))
        for rank in range(peers):
            assert self.copies.joined(rank, self.now) == []

    def begin(self) -> list[CopyAction]:
        return self.copies.begin(self.now)

    def after(self, seconds: float) -> Conversation:
        self.now += seconds
        return self

    def good(self, rank: int, index: int, attempt: int = 0) -> list[CopyAction]:
        return self.copies.exited(rank, index, attempt, self.now, good=True, told=False)

    def bad(self, rank: int, index: int, attempt: int = 0) -> list[CopyAction]:
        return self.copies.exited(rank, index, attempt, self.now, good=False, told=False)

    def stopped(self, rank: int, index: int, attempt: int = 0) -> list[CopyAction]:
        return self.copies.exited(rank, index, attempt, self.now, good=False, told=True)

    def done(self, rank: int, index: int, attempt: int = 0) -> list[CopyAction]:
        """It ended well, and its files are on the disk."""
        assert self.good(rank, index, attempt) == [KeepResult(rank, index, attempt, good=True)]
        return self.copies.kept(index, self.now)

    def kept(self, index: int) -> list[CopyAction]:
        return self.copies.kept(index, self.now)

    def lost(self, rank: int, **more: Any) -> list[CopyAction]:
        return self.copies.lost(rank, self.now, **more)

    def joins(self, rank: int, runs: tuple[int, int] | None = None) -> list[CopyAction]:
        return self.copies.joined(rank, self.now, runs)


def first(rank: int, index: int) -> StartCopy:
    return StartCopy(rank, index, 0, "first")


def again(rank: int, index: int, attempt: int) -> StartCopy:
    return StartCopy(rank, index, attempt, "again")


def second(rank: int, index: int, attempt: int) -> StartCopy:
    return StartCopy(rank, index, attempt, "second")


def test_each_peer_has_one_copy_and_the_next_one_begins_when_one_ends() -> None:
    job = Conversation(copies=3, peers=2)
    assert job.begin() == [first(0, 0), first(1, 1)]
    assert job.copies.under_way == {0: 0, 1: 1}
    assert job.done(1, 1) == [first(1, 2)]
    assert job.done(1, 2) == []
    assert not job.copies.over
    assert job.done(0, 0) == []
    assert job.copies.over
    assert job.copies.resting
    assert job.copies.needed == 0


def test_a_peer_begins_nothing_new_before_its_files_are_here() -> None:
    job = Conversation(copies=2, peers=1)
    job.begin()
    assert job.good(0, 0) == [KeepResult(0, 0, 0, good=True)]
    assert job.copies.due(job.now) == []
    assert job.kept(0) == [first(0, 1)]


def test_who_comes_later_is_given_what_waits() -> None:
    job = Conversation(copies=2, peers=0)
    assert job.begin() == []
    assert job.copies.needed == 1
    assert job.joins(7) == [first(7, 0)]
    assert job.joins(9) == [first(9, 1)]


def test_a_lost_peer_costs_no_attempt() -> None:
    job = Conversation(copies=1, peers=1, attempts=1)
    job.begin()
    assert job.lost(0) == []
    assert job.joins(1) == [again(1, 0, 1)]
    assert job.lost(1) == []
    assert job.joins(2) == [again(2, 0, 2)]
    assert job.done(2, 0, 2) == []
    assert job.copies.over


def test_the_files_of_a_peer_that_is_lost_on_their_way_are_made_again() -> None:
    job = Conversation(copies=1, peers=2)
    job.begin()
    job.good(0, 0)
    assert job.lost(0) == [again(1, 0, 1)]


def test_a_bad_end_is_tried_again_elsewhere_until_attempts_are_spent() -> None:
    job = Conversation(copies=1, peers=3, attempts=3)
    job.begin()
    assert job.bad(0, 0) == [again(1, 0, 1)]
    assert job.bad(1, 0, 1) == [again(2, 0, 2)]
    assert job.bad(2, 0, 2) == [KeepResult(2, 0, 2, good=False)]
    assert not job.copies.resting
    assert job.kept(0) == []
    assert job.copies.over


def test_where_it_failed_it_begins_again_only_when_no_other_peer_is_free() -> None:
    job = Conversation(copies=3, peers=2, attempts=5)
    job.begin()
    assert job.bad(0, 0) == [first(0, 2)]  # something else waits for that peer
    assert job.bad(0, 2) == [again(0, 0, 1)]  # nothing else does, and the other one is busy
    assert job.done(1, 1) == [again(1, 2, 1)]
    assert job.bad(0, 0, 1) == [again(0, 0, 2)]


def test_what_failed_at_most_peers_chooses_first() -> None:
    job = Conversation(copies=2, peers=2, attempts=5)
    job.begin()
    assert job.bad(1, 1) == [again(1, 1, 1)]
    assert job.lost(0) == []
    assert job.bad(1, 1, 1) == [again(1, 0, 1)]  # where it did not fail
    assert job.joins(2) == [again(2, 1, 2)]
    assert job.bad(2, 1, 2) == [again(2, 1, 3)]
    assert job.lost(1) == job.lost(2) == []
    assert job.joins(3) == [again(3, 1, 4)]


def test_never_means_one_end() -> None:
    job = Conversation(copies=1, peers=2, restart="never", attempts=3)
    job.begin()
    assert job.bad(0, 0) == [KeepResult(0, 0, 0, good=False)]


def test_always_begins_again_after_a_good_end_until_attempts_are_spent() -> None:
    job = Conversation(copies=1, peers=1, restart="always", attempts=3)
    job.begin()
    assert job.good(0, 0) == [again(0, 0, 1)]
    assert job.bad(0, 0, 1) == [again(0, 0, 2)]
    assert job.good(0, 0, 2) == [KeepResult(0, 0, 2, good=True)]
    # Its files are lost on their way: the last attempt is made again.
    assert job.lost(0) == []
    assert job.joins(1) == [again(1, 0, 3)]
    assert job.good(1, 0, 3) == [KeepResult(1, 0, 3, good=True)]


def test_a_limit_of_the_sandbox_counts_as_an_attempt() -> None:
    job = Conversation(copies=1, peers=2, attempts=2)
    job.begin()
    assert job.lost(0, own_fault=True) == [again(1, 0, 1)]
    assert job.lost(1, own_fault=True) == [KeepResult(1, 0, 1, good=False)]


def test_what_is_on_the_disk_is_not_done_again() -> None:
    job = Conversation(copies=4, peers=4, finished=frozenset({0, 2}))
    assert job.begin() == [first(0, 1), first(1, 3)]


def test_a_copy_of_an_earlier_life_goes_on() -> None:
    job = Conversation(copies=3, peers=0, finished=frozenset({2}))
    assert job.joins(0, runs=(0, 4)) == []
    assert job.joins(1) == []
    assert job.joins(2, runs=(2, 0)) == [StopCopy(2, 2, 0)]  # that one has its result
    assert job.joins(3, runs=(0, 3)) == [StopCopy(3, 0, 3)]  # another one does that
    assert job.begin() == [first(1, 1)]
    assert job.bad(0, 0, 4) == [again(0, 0, 5)]


def test_a_copy_that_ended_while_the_client_was_away_is_its_result() -> None:
    job = Conversation(copies=1, peers=0)
    job.joins(0, runs=(0, 1))
    assert job.good(0, 0, 1) == [KeepResult(0, 0, 1, good=True)]
    assert job.begin() == []
    assert job.kept(0) == []
    assert job.copies.over


# --- standing still ---


def test_one_that_takes_far_longer_than_the_others_is_begun_a_second_time() -> None:
    job = Conversation(copies=4, peers=4)
    job.begin()
    for rank in range(3):
        job.after(4.0 if rank == 0 else 0.0).done(rank, rank)
    assert job.copies.next_deadline() == 100.0 + 1.5 * 4.0
    assert job.after(1.9).copies.due(job.now) == []
    assert job.after(0.1).copies.due(job.now) == [second(0, 3, 1)]
    assert job.copies.next_deadline() is None
    # The first good end wins, and the other one is told to end.
    assert job.good(0, 3, 1) == [KeepResult(0, 3, 1, good=True)]
    assert job.kept(3) == [StopCopy(3, 3, 0)]
    assert job.copies.over
    assert job.stopped(3, 3) == []


def test_short_copies_are_given_two_seconds() -> None:
    job = Conversation(copies=2, peers=2)
    job.begin()
    job.after(0.01).done(0, 0)
    assert job.copies.next_deadline() == 102.0


def test_nothing_is_begun_twice_while_something_waits_or_before_one_has_ended() -> None:
    job = Conversation(copies=2, peers=3)
    job.begin()
    assert job.copies.next_deadline() is None
    assert job.after(1000.0).copies.due(job.now) == []
    many = Conversation(copies=4, peers=2)
    many.begin()
    many.after(1.0).done(0, 0)
    assert many.after(1000.0).copies.due(many.now) == []
    assert many.copies.next_deadline() is None


def test_the_second_one_is_not_begun_where_the_index_failed() -> None:
    job = Conversation(copies=2, peers=2, attempts=5)
    job.begin()
    job.after(1.0)
    assert job.bad(0, 0) == [again(0, 0, 1)]
    assert job.bad(0, 0, 1) == [again(0, 0, 2)]
    assert job.done(1, 1) == []
    assert job.lost(0) == [again(1, 0, 3)]


def test_a_peer_that_its_owner_pauses_gets_a_second_elsewhere_after_five_seconds() -> None:
    job = Conversation(copies=1, peers=2)
    job.begin()
    assert job.copies.paused(0, job.now) == []
    assert job.copies.next_deadline() == 105.0
    assert job.after(5.0).copies.due(job.now) == [second(1, 0, 1)]
    # Both end: one result.
    assert job.good(1, 0, 1) == [KeepResult(1, 0, 1, good=True)]
    job.copies.resumed(0, job.now)
    assert job.good(0, 0) == []
    # The one whose files came first is lost on the way; the other's are fetched.
    assert job.lost(1) == [KeepResult(0, 0, 0, good=True)]
    assert job.kept(0) == []
    assert job.copies.over


def test_a_paused_peer_is_given_nothing() -> None:
    job = Conversation(copies=1, peers=1)
    job.copies.paused(0, job.now)
    assert job.begin() == []
    assert job.copies.resumed(0, job.now) == [first(0, 0)]


def test_a_peer_that_is_handed_back_gets_a_second_elsewhere_at_once_and_nothing_more() -> None:
    job = Conversation(copies=2, peers=1)
    job.begin()
    assert job.copies.leaves(0, job.now) == []
    assert job.joins(1) == [first(1, 1)]
    assert job.done(1, 1) == [second(1, 0, 1)]
    assert job.lost(0) == []
    assert job.done(1, 0, 1) == []


def test_one_of_two_that_fails_leaves_the_other_its_chance() -> None:
    job = Conversation(copies=1, peers=2, restart="never")
    job.begin()
    job.copies.paused(0, job.now)
    job.after(6.0).copies.due(job.now)
    assert job.bad(1, 0, 1) == []
    assert job.lost(0) == [KeepResult(1, 0, 1, good=False)]


def test_holding_begins_nothing_more() -> None:
    job = Conversation(copies=3, peers=2)
    job.begin()
    job.copies.hold()
    assert job.done(0, 0) == []
    assert not job.copies.resting
    assert job.bad(1, 1) == []
    assert job.copies.resting
    assert not job.copies.over


def test_files_that_stand_still_cost_a_second_copy_whose_files_come_beside_them() -> None:
    job = Conversation(copies=1, peers=3)
    job.begin()
    assert job.good(0, 0) == [KeepResult(0, 0, 0, good=True)]
    assert job.copies.paused(0, job.now) == []
    assert job.copies.next_deadline() == 105.0
    assert job.after(5.0).copies.due(job.now) == [second(1, 0, 1)]
    assert job.copies.under_way == {0: 0, 1: 0}
    assert job.copies.due(job.now) == [], "no third one"
    assert job.good(1, 0, 1) == [KeepResult(1, 0, 1, good=True)]
    # Whichever is here first counts, and both peers are free.
    job.copies.resumed(0, job.now)
    assert job.kept(0) == []
    assert job.copies.over
    assert job.copies.resting


def test_files_stand_still_that_take_far_longer_than_those_of_the_others_and_a_minute() -> None:
    job = Conversation(copies=3, peers=4)
    job.begin()
    assert job.good(0, 0) == [KeepResult(0, 0, 0, good=True)]
    assert job.good(1, 1) == [KeepResult(1, 1, 0, good=True)]
    assert job.good(2, 2) == [KeepResult(2, 2, 0, good=True)]
    assert job.copies.next_deadline() is None
    job.after(4.0).kept(0)
    assert job.copies.next_deadline() == 160.0
    job.after(76.0).kept(1)
    assert job.copies.next_deadline() == 100.0 + 1.5 * 80.0
    assert job.after(39.9).copies.due(job.now) == []
    assert job.after(0.1).copies.due(job.now) == [second(0, 2, 1)]


def test_files_of_the_second_one_come_once_those_of_the_first_stand_still() -> None:
    job = Conversation(copies=1, peers=2)
    job.begin()
    job.copies.paused(0, job.now)
    assert job.after(5.0).copies.due(job.now) == [second(1, 0, 1)]
    job.copies.resumed(0, job.now)
    assert job.good(0, 0) == [KeepResult(0, 0, 0, good=True)]
    assert job.good(1, 0, 1) == []
    job.copies.paused(0, job.now)
    job.copies.hold()  # it is not begun anew, but what has ended comes home
    assert job.copies.next_deadline() == 110.0
    assert job.after(5.0).copies.due(job.now) == [KeepResult(1, 0, 1, good=True)]


def test_a_job_that_pauses_does_not_wait_for_files_that_stand_still() -> None:
    job = Conversation(copies=2, peers=1)
    job.begin()
    job.good(0, 0)
    job.copies.hold()
    assert not job.copies.resting
    job.copies.paused(0, job.now)
    assert not job.copies.resting
    assert job.copies.next_deadline() == 105.0
    assert job.after(5.0).copies.due(job.now) == []
    assert job.copies.resting


# --- together ---


def test_together_is_all_or_none() -> None:
    job = Conversation(copies=3, peers=2, together=True)
    assert job.begin() == []
    assert job.copies.needed == 3
    assert job.joins(5) == [first(0, 0), first(1, 1), first(5, 2)]
    assert job.good(0, 0) == []
    assert job.good(1, 1) == []
    results = [KeepResult(0, 0, 0, good=True), KeepResult(1, 1, 0, good=True), KeepResult(5, 2, 0, good=True)]
    assert job.good(5, 2) == results
    for index in range(3):
        assert job.kept(index) == []
    assert job.copies.over


def test_together_one_lost_means_all_begin_anew() -> None:
    job = Conversation(copies=2, peers=3, together=True, attempts=1)
    job.begin()
    assert job.lost(0) == [StopCopy(1, 1, 0)]
    # It has not said that it ended, so it is not free.
    assert job.joins(3) == [again(2, 0, 1), again(3, 1, 1)]
    assert job.stopped(1, 1) == []


def test_together_a_bad_end_is_one_attempt_of_all() -> None:
    job = Conversation(copies=2, peers=2, together=True, attempts=2)
    job.begin()
    assert job.good(0, 0) == []
    assert job.bad(1, 1) == [again(0, 1, 1), again(1, 0, 1)]
    failed = job.bad(0, 1, 1)
    assert failed == [KeepResult(0, 1, 1, good=False), KeepResult(0, 0, 1, good=False), StopCopy(1, 0, 1)]
    job.kept(0)
    job.kept(1)
    assert job.copies.over


def test_together_who_is_lost_with_its_files_begins_anew_with_those_alone_that_lack_them() -> None:
    job = Conversation(copies=2, peers=2, together=True)
    job.begin()
    job.good(0, 0)
    job.good(1, 1)
    assert job.lost(1) == []
    assert job.kept(0) == [again(0, 1, 1)]
    assert job.good(0, 1, 1) == [KeepResult(0, 1, 1, good=True)]


def test_together_those_that_begin_anew_do_so_with_all_that_lack_their_files_by_then() -> None:
    job = Conversation(copies=2, peers=3, together=True)
    job.begin()
    job.good(0, 0)
    job.good(1, 1)
    assert job.lost(0) == [again(2, 0, 1)]
    assert job.lost(1) == [StopCopy(2, 0, 1)]
    assert job.stopped(2, 0, 1) == []
    assert job.joins(3) == [again(2, 1, 1), again(3, 0, 2)]


@pytest.mark.parametrize("running", [True, False])
def test_together_copies_of_an_earlier_life_go_on_only_if_all_do(running: bool) -> None:
    job = Conversation(copies=2, peers=0, together=True)
    job.joins(0, runs=(0, 0))
    job.joins(1, runs=(1, 0) if running else None)
    assert job.begin() == ([] if running else [StopCopy(0, 0, 0)])
    if not running:
        assert job.stopped(0, 0) == [again(0, 0, 1), first(1, 1)]


def test_together_and_always() -> None:
    job = Conversation(copies=2, peers=2, together=True, restart="always", attempts=2)
    job.begin()
    job.good(0, 0)
    assert job.good(1, 1) == [again(0, 0, 1), again(1, 1, 1)]
    job.good(0, 0, 1)
    assert job.good(1, 1, 1) == [KeepResult(0, 0, 1, good=True), KeepResult(1, 1, 1, good=True)]


def test_what_is_said_of_a_copy_that_is_not_there_changes_nothing() -> None:
    job = Conversation(copies=1, peers=1)
    job.begin()
    assert job.good(0, 0, 7) == []
    assert job.bad(3, 0) == []
    assert job.copies.paused(9, job.now) == []
    assert job.copies.leaves(9, job.now) == []
    assert job.lost(9) == []
    assert job.copies.under_way == {0: 0}
