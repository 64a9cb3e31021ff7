"""The sums of this peer's receipts: credits by day, confirmed and pending, and the work done.

Running sums: a status every second looks at no receipt again.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from itertools import islice

from axonp2p.ledger.balances import credits_of
from peer_daemon.control.status import CreditsNow, DoneNow, JobEarned

DAYS = 30
JOBS_SHOWN = 10
_QUARTER_S = 900
"""Every time zone begins its days at a quarter of an hour."""


@dataclass(slots=True)
class _OfJob:
    at: int = 0
    rounds: int = 0
    flops: int = 0
    pending: int = 0


class Earnings:
    """Sums over receipts, each of which must be added once; any thread may, and who asks never waits for a disk.

    FLOPs are Python's own integers: nothing overflows.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._quarters: Counter[int] = Counter()
        """FLOPs by the quarter of an hour, since 1970, in which they were signed; of a little more than 30 days."""
        self._confirmed = 0
        self._pending = 0
        self._jobs: dict[str, _OfJob] = {}
        """That of the newest receipt last."""
        self._rounds = 0
        self._samples = 0
        self._flops = 0
        self._days: tuple[date, list[float]] | None = None

    def signed(self, at: int, job: str, flops: int, samples: int) -> None:
        """A round of `job` was accepted at `at`, Unix seconds; no tracker has acknowledged it yet."""
        with self._turn:
            self._quarters[at // _QUARTER_S] += flops
            self._pending += flops
            self._jobs[job] = one = self._jobs.pop(job, None) or _OfJob()
            one.at, one.rounds, one.flops, one.pending = at, one.rounds + 1, one.flops + flops, one.pending + flops
            self._rounds += 1
            self._samples += samples
            self._flops += flops
            self._days = None

    def confirmed(self, job: str, flops: int) -> None:
        """A tracker acknowledged one that was added before."""
        with self._turn:
            self._jobs[job].pending -= flops
            self._pending -= flops
            self._confirmed += flops

    def refused(self, at: int, job: str, flops: int) -> None:
        """The tracker that gave its reservation will never take one that was added before: the work stays done."""
        with self._turn:
            self._jobs[job].pending -= flops
            self._jobs[job].flops -= flops
            self._pending -= flops
            self._quarters[at // _QUARTER_S] -= flops
            self._days = None

    def credits(self, now: float, zone: tzinfo | None = None) -> CreditsNow:
        """At `now`, Unix seconds; days begin at midnight in `zone`, by default the machine's own."""
        today = datetime.fromtimestamp(now, zone).date()
        with self._turn:
            if self._days is None or self._days[0] != today:
                self._days = today, self._by_day(today, zone)
            days = self._days[1]
            return CreditsNow(
                today=days[-1],
                confirmed=credits_of(self._confirmed),
                pending=credits_of(self._pending),
                days=[*days],
                jobs=self._last_jobs(),
            )

    @property
    def acknowledged(self) -> int:
        """FLOPs that trackers have taken: it changes when there is something new to be proved."""
        with self._turn:
            return self._confirmed

    def done(self) -> DoneNow:
        """Everything that receipts tell of, refused ones too."""
        with self._turn:
            return DoneNow(jobs=len(self._jobs), rounds=self._rounds, samples=self._samples, flops=self._flops)

    def _last_jobs(self) -> list[JobEarned]:
        return [
            JobEarned(
                job=job,
                at=one.at,
                rounds=one.rounds,
                earned=credits_of(one.flops),
                pending=credits_of(one.pending),
            )
            for job, one in islice(reversed(self._jobs.items()), JOBS_SHOWN)
        ]

    def _by_day(self, today: date, zone: tzinfo | None) -> list[float]:
        first = today - timedelta(days=DAYS - 1)
        oldest = datetime.combine(first - timedelta(days=1), time.min, zone).timestamp() // _QUARTER_S
        for quarter in [quarter for quarter in self._quarters if quarter < oldest]:
            del self._quarters[quarter]
        flops = [0] * DAYS
        for quarter, worked in self._quarters.items():
            day = (datetime.fromtimestamp(quarter * _QUARTER_S, zone).date() - first).days
            if 0 <= day < DAYS:
                flops[day] += worked
        return [credits_of(worked) for worked in flops]
