"""From what members report to what a person wants to see: one loss, speeds by name, and how long it will take.

Pure: times are passed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from axonp2p.kinds.train.events import RoundProgress
from axonp2p.training.messages import Progress
from axonp2p.verification.claims import RoundDone


@dataclass(frozen=True)
class RoundSummary:
    """One accepted round over all members."""

    loss: float
    metrics: dict[str, float]
    samples: int
    samples_per_second: dict[str, float]


def summarise(reports: Mapping[str, RoundDone]) -> RoundSummary:
    """Means over samples (loss) and test samples (metrics); `reports` are by the peer's name."""
    samples = sum(report.samples for report in reports.values())
    loss = sum(report.loss * report.samples for report in reports.values()) / max(1, samples)
    sums: dict[str, float] = {}
    weights: dict[str, int] = {}
    for report in reports.values():
        for name, value in report.metrics.items():
            sums[name] = sums.get(name, 0.0) + value * report.test_samples
            weights[name] = weights.get(name, 0) + report.test_samples
    return RoundSummary(
        loss=loss,
        metrics={name: total / weights[name] for name, total in sums.items() if weights[name]},
        samples=samples,
        samples_per_second={
            name: report.samples / report.train_seconds if report.train_seconds > 0 else 0.0
            for name, report in reports.items()
        },
    )


class JobPace:
    """How far the job is and how long the rest will take, from the rounds that are done."""

    def __init__(self, *, rounds: int, first_round: int, steps: int, now: float) -> None:
        self._rounds = rounds
        self._done = first_round
        self._first_round = first_round
        self._steps = steps
        self._began: float | None = None
        self._round_began = now
        self._latest: dict[str, tuple[Progress, float]] = {}

    @property
    def began(self) -> float | None:
        """When the first sign of training came."""
        return self._began

    def begun(self, now: float) -> None:
        """A sign of training came."""
        if self._began is None:
            self._began = now

    def ends_after(self, rounds: int) -> None:
        """No more rounds are to come than so many in all."""
        self._rounds = rounds

    def heard(self, peer: str, progress: Progress, now: float) -> RoundProgress:
        """A member's report from inside a round."""
        self.begun(now)
        current = max((seen.round, seen.attempt) for seen, _ in [*self._latest.values(), (progress, now)])
        self._latest = {name: entry for name, entry in self._latest.items() if _attempt(entry[0]) == current}
        if _attempt(progress) == current:
            self._latest[peer] = (progress, now)
        return self._shown()

    def begun_round(self, now: float) -> None:
        """The members were told to train the next round (its first attempt)."""
        self._round_began = now

    def finished_round(self, now: float) -> tuple[float, float]:
        """A round was accepted: its seconds, and the estimate in seconds for all that are left."""
        if self._began is None:
            self._began = self._round_began
        seconds = now - self._round_began
        self._done += 1
        self._latest.clear()
        return seconds, self._seconds_a_round(now) * (self._rounds - self._done)

    def _shown(self) -> RoundProgress:
        reports = {name: progress for name, (progress, _) in self._latest.items()}
        fraction = min((progress.step / self._steps for progress in reports.values()), default=0.0)
        samples = sum(progress.samples for progress in reports.values())
        loss = sum(progress.loss * progress.samples for progress in reports.values()) / max(1, samples)
        done = self._done - self._first_round
        left = self._rounds - self._done - min(1.0, fraction)
        eta = self._seconds_a_round(self._round_began) * left if done else None
        return RoundProgress(
            round=self._done,
            rounds=self._rounds,
            fraction=min(1.0, fraction),
            loss=loss,
            samples_per_second={
                name: progress.samples / max(1e-3, heard_at - self._round_began)
                for name, (progress, heard_at) in self._latest.items()
            },
            eta_s=eta,
        )

    def _seconds_a_round(self, until: float) -> float:
        done = self._done - self._first_round
        return (until - (self._began or until)) / done if done else 0.0


def _attempt(progress: Progress) -> tuple[int, int]:
    return progress.round, progress.attempt
