"""Members that lie together: nobody honest goes, no wrong weights come home, whatever they say."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from axonp2p.jobs.aggregation import MEAN, Rule
from axonp2p.training.rounds.divergence import Divergences, DivergenceVerdict, sure_liars
from axonp2p.verification.claims import RoundDone
from tests.laboratory.lying_members import ROUNDS, LyingJob, play
from tests.unit.training.conversation import OTHER, SECOND, THIRD, round_done

pytestmark = pytest.mark.slow

GOOD, BAD = b"g" * 32, b"b" * 32
TEN = list(range(10))
MEDIAN = Rule("median", 2)


def said(members: int, *, about: Iterable[int] = (), state: bytes = SECOND, good: bytes = GOOD) -> RoundDone:
    """What one of so many members reports, with another hash for the slices of those in `about`."""
    slices = [BAD if owner in about else good for owner in range(members)]
    return round_done(0, 0, state, members=members, slices=slices)


def judged(divergences: Divergences, reports: dict[int, RoundDone], rule: Rule = MEDIAN) -> DivergenceVerdict:
    members = sorted(reports)
    return divergences.judge(reports, members, members, {rank: f"peer{rank}" for rank in members}, rule)


def test_two_of_ten_that_contradict_all_owners_go_and_nobody_else() -> None:
    honest = {rank: said(10) for rank in TEN[:8]}
    liars = {rank: said(10, about=TEN[:8], state=OTHER) for rank in (8, 9)}
    verdict = judged(Divergences(), honest | liars)
    assert set(verdict.gone) == {8, 9}


def test_an_owner_that_two_contradict_only_loses_its_slice() -> None:
    divergences = Divergences()
    liars = {rank: said(10, about=[0], state=OTHER) for rank in (8, 9)}
    verdict = judged(divergences, {rank: said(10) for rank in TEN[:8]} | liars)
    assert not verdict.gone
    assert verdict.redo == "peer0 and peer8 had different results of peer0's slice after round 1"
    assert {rank for one in divergences.not_owners(TEN, []) for rank in one} == {0, 8, 9}


def test_an_owner_that_more_contradict_than_may_lie_goes_and_the_round_is_redone() -> None:
    victims = {rank: said(10, about=[0], state=THIRD) for rank in (3, 4, 5)}
    verdict = judged(Divergences(), {rank: said(10) for rank in TEN} | victims)
    assert set(verdict.gone) == {0}
    assert verdict.spoilt


def test_who_contradicts_another_owner_each_time_is_found_by_that() -> None:
    divergences = Divergences()
    for attempt in range(3):
        verdict = judged(
            divergences, {rank: said(10) for rank in TEN[:9]} | {9: said(10, about=[attempt], state=OTHER)}
        )
        assert set(verdict.gone) == ({9} if attempt == 2 else set())


def test_no_job_loses_more_by_contradictions_than_may_lie() -> None:
    divergences = Divergences()
    gone: set[int] = set()
    for odd in (9, 8, 7, 6):
        reports = {rank: said(10) for rank in TEN if rank not in gone} | {odd: said(10, state=OTHER)}
        verdict = judged(divergences, reports)
        gone |= set(verdict.gone)
    assert gone == {9, 8}


def test_when_redoing_tells_nothing_new_most_go_on_and_the_others_come_back_later() -> None:
    divergences = Divergences()
    reports = {rank: said(10) for rank in TEN[:9]} | {9: said(10, about=[0], state=OTHER)}
    assert judged(divergences, reports).redo
    assert set(judged(divergences, reports).behind) == {9}


def test_with_no_majority_nobody_is_accused() -> None:
    divergences = Divergences()
    reports = {rank: said(4, state=SECOND if rank < 2 else OTHER) for rank in range(4)}
    verdicts = [judged(divergences, reports, MEAN) for _ in range(3)]
    assert not any(verdict.gone or verdict.behind for verdict in verdicts)
    assert [bool(verdict.undecided) for verdict in verdicts] == [False, False, True]


def test_what_is_said_of_a_slice_that_is_empty_is_no_contradiction() -> None:
    reports = {rank: said(10) for rank in TEN[:9]} | {9: said(10, about=[0], state=OTHER)}
    verdict = Divergences().judge(reports, TEN, [1, 2], {rank: str(rank) for rank in TEN}, MEDIAN)
    assert set(verdict.gone) == {9}, "it had the same results as all others"


def test_what_is_said_of_empty_slices_costs_their_owner_nothing() -> None:
    three = {rank: said(10, about=[0]) for rank in (6, 7, 8)}
    reports = {rank: said(10) for rank in TEN[:6]} | three | {9: said(10, about=[1], state=OTHER)}
    verdict = Divergences().judge(reports, TEN, [1, 2], {rank: str(rank) for rank in TEN}, MEDIAN)
    assert not verdict.gone
    assert verdict.redo


def test_after_one_liar_went_two_others_still_throw_nobody_out() -> None:
    divergences = Divergences()
    alone = {rank: said(10) for rank in TEN[:9]} | {9: said(10, about=TEN[:9], state=OTHER)}
    assert set(judged(divergences, alone).gone) == {9}
    # One that came instead of it may lie as well.
    pair = {rank: said(9, about=[0], state=OTHER) for rank in (7, 8)}
    assert not judged(divergences, {rank: said(9) for rank in TEN[:7]} | pair).gone


@pytest.mark.parametrize(
    ("pairs", "most", "liars"),
    [
        ([(0, 1)], 1, []),
        ([(0, 1), (0, 2)], 1, [0]),
        ([(0, 1), (2, 3), (0, 4)], 2, [0]),
        ([(0, 1), (2, 3)], 1, []),
        ([(0, 1), (1, 2), (0, 2)], 1, []),
        ([], 0, []),
    ],
)
def test_who_is_sure_to_lie(pairs: list[tuple[int, int]], most: int, liars: list[int]) -> None:
    assert sure_liars([frozenset(pair) for pair in pairs], most) == liars


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_jobs_with_as_many_liars_as_may_be(first: int) -> None:
    for seed in range(first, first + 25):
        outcome = play(seed)
        assert not outcome.wrong, (seed, outcome.wrong)
        assert not outcome.given_up, (seed, outcome.given_up)


@pytest.mark.parametrize("seed", range(40))
def test_owners_that_say_that_honest_members_were_late_have_nobody_dropped(seed: int) -> None:
    """All liars say it, each of its own slice, round for round, and of whom they choose."""
    job = LyingJob(seed)
    job._together = "too late"
    outcome = job.run()
    assert not outcome.wrong, outcome.wrong
    assert outcome.accepted == ROUNDS
