"""Which round is the best, and when a job ends because none is better any more."""

from __future__ import annotations

import math

import pytest

from axonp2p.kinds.train.kept.best_round import BestBy, BestRound, EarlyStopping


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("max accuracy", BestBy("accuracy", largest=True)),
        ("min loss", BestBy("loss", largest=False)),
        ("max top 5", BestBy("top 5", largest=True)),
    ],
)
def test_it_is_written_as_people_say_it(written: str, read: BestBy) -> None:
    assert BestBy.read(written) == read


@pytest.mark.parametrize("written", ["", "accuracy", "max", "max ", "most accuracy", 'max "x"', "max  x", "min loss\n"])
def test_what_is_written_otherwise_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="neither max nor min"):
        BestBy.read(written)


def test_the_loss_is_that_of_evaluate_or_else_that_of_training() -> None:
    by = BestBy.read("min loss")
    assert by.value(0.5, {"loss": 0.7, "accuracy": 0.9}) == 0.7
    assert by.value(0.5, {"accuracy": 0.9}) == 0.5
    assert BestBy.read("max accuracy").value(0.5, {"loss": 0.7}) is None
    assert by.value(math.nan, {}) is None
    assert by.value(0.5, {"loss": math.inf}) is None


def values(job: EarlyStopping, *losses: float, first: int = 1) -> list[int]:
    """After which of these rounds, from 1, the job would end."""
    return [rounds for rounds, loss in enumerate(losses, first) if job.accepted(rounds, loss, {})]


def test_a_job_ends_so_many_rounds_after_the_best_one() -> None:
    job = EarlyStopping(BestBy.read("min loss"), 3, 1)
    assert values(job, 0.9, 0.5, 0.7, 0.6, 0.51) == [5]
    assert job.best == BestRound(rounds=2, value=0.5)


def test_a_better_round_begins_the_count_anew_and_one_alike_does_not() -> None:
    assert values(EarlyStopping(BestBy.read("min loss"), 2, 1), 0.9, 0.9, 0.8, 0.85, 0.8) == [5]
    assert values(EarlyStopping(BestBy.read("min loss"), 2, 1), 0.9, 0.9, 0.9) == [3]


def test_without_patience_it_never_ends_early_and_still_knows_the_best() -> None:
    job = EarlyStopping(BestBy.read("min loss"), 0, 1)
    assert values(job, 0.1, *[0.5] * 100) == []
    assert job.best == BestRound(rounds=1, value=0.1)


def test_only_rounds_whose_states_are_kept_can_be_the_best() -> None:
    job = EarlyStopping(BestBy.read("min loss"), 3, 2)
    assert values(job, 0.1, 0.9, 0.1, 0.8, 0.1, 0.9, 0.9) == [7]
    assert job.best == BestRound(rounds=4, value=0.8)


def test_the_next_life_goes_on_counting() -> None:
    job = EarlyStopping(BestBy.read("min loss"), 3, 1, BestRound(rounds=4, value=0.2))
    assert values(job, 0.3, 0.3, 0.3, first=5) == [7]


def test_a_metric_that_no_round_has_ends_nothing() -> None:
    job = EarlyStopping(BestBy.read("max accuracy"), 1, 1)
    assert not any(job.accepted(rounds, 0.5, {"error": 0.1}) for rounds in range(1, 50))
    assert job.best is None


def test_a_round_whose_loss_is_no_number_is_not_the_best() -> None:
    job = EarlyStopping(BestBy.read("min loss"), 2, 1)
    assert values(job, 0.5, math.nan, -math.inf) == [3]
    assert job.best == BestRound(rounds=1, value=0.5)
