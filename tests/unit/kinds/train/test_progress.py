"""What members report, as one loss, speeds and a time that is left."""

from __future__ import annotations

from typing import Any

import pytest

from axonp2p.kinds.train.progress import JobPace, summarise
from axonp2p.training.messages import Progress
from axonp2p.verification.claims import RoundDone


def done(**changes: Any) -> RoundDone:
    usual: dict[str, Any] = {
        "round": 0, "attempt": 0, "state": b"s" * 32, "loss": 1.0, "samples": 100, "flops": 10**9,
        "train_seconds": 2.0, "exchange_seconds": 0.1, "exchanges": 1, "left_out": [], "kept_back": 0, "slices": [],
        "sent_bytes": 10, "received_bytes": 10, "metrics": {}, "test_samples": 0,
    }  # fmt: skip
    return RoundDone(**(usual | changes))


def steps(step: int, *, round: int = 0, attempt: int = 0, samples: int = 0, loss: float = 1.0) -> Progress:
    return Progress(round=round, attempt=attempt, step=step, loss=loss, samples=samples)


def test_means_are_over_samples() -> None:
    summary = summarise(
        {
            "otter": done(loss=1.0, samples=100, metrics={"accuracy": 0.5}, test_samples=10),
            "heron": done(loss=2.0, samples=300, metrics={"accuracy": 1.0}, test_samples=30, train_seconds=1.0),
        }
    )
    assert summary.loss == pytest.approx(1.75)
    assert summary.metrics == {"accuracy": pytest.approx(0.875)}
    assert summary.samples == 400
    assert summary.samples_per_second == {"otter": 50.0, "heron": 300.0}


def test_a_member_without_test_data_does_not_count_for_metrics() -> None:
    reports = {
        "otter": done(metrics={"accuracy": 0.5}, test_samples=0),
        "heron": done(metrics={"accuracy": 1.0}, test_samples=3),
    }
    assert summarise(reports).metrics == {"accuracy": 1.0}
    assert summarise({"otter": done(metrics={"accuracy": 0.5})}).metrics == {}


def test_nothing_is_divided_by_zero() -> None:
    summary = summarise({"otter": done(samples=0, train_seconds=0.0)})
    assert (summary.loss, summary.samples_per_second) == (0.0, {"otter": 0.0})


def test_the_slowest_member_says_how_far_a_round_is() -> None:
    pace = JobPace(rounds=10, first_round=0, steps=20, now=0.0)
    pace.begun_round(100.0)
    pace.heard("otter", steps(20, samples=200), 102.0)
    shown = pace.heard("heron", steps(5, samples=50, loss=3.0), 104.0)
    assert (shown.round, shown.fraction) == (0, 0.25)
    assert shown.samples_per_second == {"otter": 100.0, "heron": 12.5}
    assert shown.loss == pytest.approx((200 + 150) / 250)
    assert shown.eta_s is None
    assert pace.began == 102.0


def test_the_time_left_follows_the_rounds_that_are_done() -> None:
    pace = JobPace(rounds=10, first_round=4, steps=10, now=0.0)
    pace.begun_round(1000.0)
    pace.heard("otter", steps(1, round=4), 1000.0)
    assert pace.finished_round(1002.0) == (2.0, 10.0)
    pace.begun_round(1002.0)
    shown = pace.heard("otter", steps(5, round=5), 1003.0)
    assert shown.eta_s == pytest.approx(2.0 * 4.5)
    assert pace.finished_round(1004.0) == (2.0, 8.0)


def test_a_new_attempt_forgets_the_old_one() -> None:
    pace = JobPace(rounds=2, first_round=0, steps=10, now=0.0)
    pace.begun_round(0.0)
    pace.heard("otter", steps(9, samples=9), 1.0)
    pace.heard("heron", steps(9, samples=9), 1.0)
    assert pace.heard("otter", steps(1, attempt=1, samples=1), 2.0).samples_per_second == {"otter": 0.5}
    late = pace.heard("heron", steps(10, samples=10), 2.0)
    assert set(late.samples_per_second) == {"otter"}


def test_a_round_nobody_told_of_still_counts() -> None:
    pace = JobPace(rounds=1, first_round=0, steps=10, now=0.0)
    pace.begun_round(5.0)
    assert pace.finished_round(8.0) == (3.0, 0.0)
    assert pace.began == 5.0
