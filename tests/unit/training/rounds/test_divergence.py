"""Members whose weights differ after a round: whose slice it was, and who goes for it."""

from __future__ import annotations

from axonp2p.training.round_messages import RoundAccepted, RoundBegunAnew
from tests.unit.training.conversation import OTHER, SECOND, THIRD, Conversation, dropped, error_in, only, started

GOOD, BAD, WORSE = (letter.encode() * 32 for letter in "gbw")


def test_an_owner_whose_slice_differs_at_two_goes_at_once() -> None:
    talk = Conversation(4)
    talk.all_ready()
    right, wrong = [GOOD] * 4, [GOOD, BAD, GOOD, GOOD]
    said = talk.hears(
        talk.report(0, 0, SECOND, slices=right),
        talk.report(1, 0, SECOND, slices=right),
        talk.report(2, 0, OTHER, slices=wrong),
        talk.report(3, 0, OTHER, slices=wrong),
    )
    assert dropped(said) == [1]
    assert only(said, RoundBegunAnew)[0].reason == "lynx: the others had different results of its slice after round 1"
    assert set(started(said)) == {0, 2, 3}


def test_what_an_owner_told_all_others_but_did_not_apply_itself_does_not_count() -> None:
    talk = Conversation(4)
    talk.all_ready()
    said = talk.hears(
        *(talk.report(rank, 0, SECOND, slices=[GOOD, BAD, GOOD, GOOD]) for rank in (0, 2, 3)),
        talk.report(1, 0, OTHER, slices=[GOOD] * 4),
    )
    assert dropped(said) == [1]
    assert not only(said, RoundAccepted)
    assert set(started(said)) == {0, 2, 3}


def test_where_one_differs_the_round_is_redone_with_slices_that_neither_of_the_two_owns() -> None:
    talk = Conversation(3)
    talk.all_ready()
    said = talk.hears(
        talk.report(0, 0, SECOND),
        talk.report(1, 0, SECOND),
        talk.report(2, 0, OTHER, slices=[b"m" * 32, BAD, b"m" * 32]),
    )
    assert said[0] == RoundBegunAnew(0, 1, "lynx and hare had different results of lynx's slice after round 1")
    order = started(said)[0]
    assert [bool(share) for share in order.shares] == [True, False, False]
    assert only(talk.all_report(0, SECOND, 1), RoundAccepted)


def test_who_is_in_a_second_dispute_goes() -> None:
    talk = Conversation(4)
    talk.all_ready()
    usual = [b"m" * 32] * 4
    for attempt, owner in enumerate((1, 3)):
        odd = [BAD if rank == owner else usual[rank] for rank in range(4)]
        said = talk.hears(
            *(talk.report(rank, 0, SECOND, attempt) for rank in (0, 1, 3)),
            talk.report(2, 0, OTHER, attempt, slices=odd),
        )
    assert dropped(said) == [2]
    assert only(said, RoundAccepted), "the others agree"


def test_of_two_that_dispute_nobody_is_accused_and_the_job_ends_by_name() -> None:
    talk = Conversation(2)
    talk.all_ready()
    for attempt in range(3):
        assert not talk.hears(talk.report(0, 0, SECOND, attempt))
        said = talk.hears(talk.report(1, 0, OTHER, attempt, slices=[BAD, b"m" * 32]))
        assert not dropped(said)
        assert (started(said) != {}) == (attempt < 2)
    assert "otter and lynx had different results of otter's slice after round 1" in error_in(said).cause


def test_whose_weights_differ_although_all_slices_are_the_same_is_to_blame_itself() -> None:
    talk = Conversation(3)
    talk.all_ready()
    said = talk.hears(talk.report(0, 0, OTHER), talk.report(1, 0, SECOND), talk.report(2, 0, SECOND))
    assert dropped(said) == [0]
    assert only(said, RoundAccepted)[0].state == SECOND


def test_when_an_owner_has_gone_the_others_are_not_blamed_for_what_it_left() -> None:
    talk = Conversation(4)
    talk.all_ready()
    said = talk.hears(
        talk.report(0, 0, SECOND, slices=[GOOD, GOOD, GOOD, GOOD]),
        talk.report(1, 0, OTHER, slices=[GOOD, GOOD, GOOD, BAD]),
        talk.report(2, 0, THIRD, slices=[GOOD, GOOD, GOOD, WORSE]),
        talk.report(3, 0, SECOND, slices=[GOOD, GOOD, GOOD, GOOD]),
    )
    assert dropped(said) == [3]
    assert set(started(said)) == {0, 1, 2}


def test_a_dispute_that_leaves_too_few_ends_the_job() -> None:
    talk = Conversation(3, min_peers=3)
    talk.all_ready()
    error = error_in(talk.hears(talk.report(0, 0, SECOND), talk.report(1, 0, OTHER), talk.report(2, 0, SECOND)))
    assert "weights differed" in error.cause
