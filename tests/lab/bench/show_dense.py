"""The third show: all values in full, once a round, beside gloo's all_reduce of as many.

Both are timed over one interval that all members share: from when the first of them has taken its local step to when
the last of them has the new weights.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from axonp2p.training.tuning.costs import dense_bytes
from axonp2p.verification.rates import TRIALS
from tests.lab.bench.baselines import environment
from tests.lab.bench.contest import told
from tests.lab.bench.floor import measure
from tests.lab.bench.ground import Ground, on_lines, on_loopback
from tests.lab.bench.jobs import exchange_memory_mb, write_exchange
from tests.lab.bench.ours import DENSE
from tests.lab.bench.programs import Programs
from tests.lab.bench.settings import Lines, Part
from tests.lab.swarm import LabSwarm

RTT_MS = 10.0
LONG_S = 20.0
"""An exchange that takes longer than this even at best is left out, unless long ones are wished for."""
WARM_UP, LONG_EXCHANGE_S = 1, 5.0
"""Exchanges that are not counted. In each of a job's first rounds a worker of ours tries its own work again, next to
the exchange. That takes processor time, and hides only where the lines alone need so many seconds."""
JUMBO = 9000
"""So that the relay, which carries each packet by itself, is not what is measured at 8 x 100 Mbit/s."""


@dataclass(frozen=True)
class Case:
    """One exchange of so many values, each line at so many Mbit/s both ways; None: bare loopback."""

    millions: int
    members: int
    rate: float | None

    @property
    def ideal_s(self) -> float:
        """What the line needs for the values alone: a member sends its own but for its slice, and its slice to all."""
        if self.rate is None:
            return 0.0
        return dense_bytes(self.millions * 10**6, self.members) / self.members / (self.rate * 1e6 / 8)

    @property
    def warm_up(self) -> int:
        """Exchanges that are not counted."""
        return WARM_UP if self.ideal_s >= LONG_EXCHANGE_S else TRIALS

    @property
    def memory_mb(self) -> int:
        return self.members * exchange_memory_mb(self.millions * 10**6)

    def ground(self) -> AbstractContextManager[Ground]:
        if self.rate is None:
            return on_loopback(self.members)
        return on_lines(Lines(self.rate, self.rate, RTT_MS), self.members, mtu=JUMBO)


def cases(rates: Sequence[float], *, long: bool) -> Iterator[Case]:
    """Those that this machine and the wished-for patience allow."""
    free = psutil.virtual_memory().available / 2**20
    for rate in (rate or None for rate in rates):
        for members in (2, 4, 8):
            for millions in (1, 10, 50):
                case = Case(millions, members, rate)
                if case.memory_mb > free:
                    print(f"... left out, it needs {case.memory_mb} MB of memory: {case}", file=sys.stderr)
                elif long or case.ideal_s <= LONG_S:
                    yield case


def show(folder: Path, times: int, rates: Sequence[float], *, long: bool) -> dict[str, Any]:
    """Medians of `times` exchanges of each case, after one that warms up. A rate of 0 is bare loopback."""
    rows = []
    floor = measure()
    for number, case in enumerate(cases(rates, long=long)):
        home = folder / f"dense-{number}"
        home.mkdir(mode=0o755)
        with told(str(case)), case.ground() as ground:
            gloo, ours = _gloo(ground, home, case, times), _ours(ground, home, case, times)
        least = floor.exchange_s(case.millions * 10**6, case.members, os.cpu_count() or 1)
        row = {"millions": case.millions, "members": case.members, "mbit": case.rate, "ideal": case.ideal_s}
        rows.append(row | {"gloo": gloo, "axon": ours, "tls_and_hash": least})
    return {"rows": rows, "rtt_ms": RTT_MS}


def common_intervals(moments: Sequence[Sequence[tuple[float, float]]]) -> list[float]:
    """Of each exchange, from the first member's readiness to the last one's end; `moments` are both, by member."""
    turns = zip(*moments, strict=True)
    return [max(end for _, end in turn) - min(ready for ready, _ in turn) for turn in turns]


def said_moments(lines: Iterable[str]) -> list[tuple[float, float]]:
    """When a member of ours was ready, and when it had the new weights, out of what its task printed."""
    said = [found.groups() for line in lines if (found := re.search(r"(READY|NEW) ([0-9.]+)$", line.strip()))]
    ready = [float(at) for what, at in said if what == "READY"]
    new = [float(at) for what, at in said if what == "NEW"]
    if len(ready) != len(new):
        raise ValueError(f"a member was ready {len(ready)} times, and had new weights {len(new)} times")
    return list(zip(ready, new, strict=True))


def _gloo(ground: Ground, home: Path, case: Case, times: int) -> float:
    reports = home / "gloo"
    reports.mkdir()
    addresses = [ground.address(member) for member in range(case.members)]
    part = Part("", case.members, times + case.warm_up, 0, 0, 0, ground.device, addresses, str(reports))
    settings = part.write(reports / "part.json")
    ranks = [str(rank) for rank in range(case.members)]
    with Programs(reports) as programs:
        for rank in ranks:
            words = [sys.executable, "-m", "tests.lab.bench.gloo_reduce", settings, rank, case.millions * 10**6]
            programs.start(rank, [*ground.inside(int(rank)), *words], environment(part, reports))
        programs.wait(ranks)
    moments = [json.loads((reports / f"{rank}.json").read_text()) for rank in ranks]
    return float(statistics.median(common_intervals(moments)[case.warm_up :]))


def _ours(ground: Ground, home: Path, case: Case, times: int) -> float:
    values = case.millions * 10**6
    with LabSwarm(ground, home / "axon", memory_mb=exchange_memory_mb(values) + 100) as swarm:
        swarm.start(*range(case.members))
        job = write_exchange(home / "job", values, case.members, times + case.warm_up, **DENSE, exchange_every=1)
        told = list(swarm.submit(job))
    for event in told:
        if event["event"] in ("round_redone", "peer_lost"):
            raise RuntimeError(f"an exchange of {case} was not whole: {event}")
    logs = sorted((home / "axon" / "client" / "jobs").glob("*/logs/*.log"))
    moments = [said_moments(log.read_text().splitlines()) for log in logs]
    return statistics.median(common_intervals(moments)[case.warm_up :])


def as_text(found: dict[str, Any]) -> str:
    """A table for people."""
    lines = [
        f"dense exchanges, round trips of {found['rtt_ms']:g} ms; link use = what the values alone need / time",
        "everybody's time is from when the first member was ready to when the last one had the new weights",
        f"{'values':>8}{'members':>9}{'Mbit/s':>10}{'gloo, s':>10}{'Axon, s':>10}{'gloo':>8}{'Axon':>8}"
        "   of gloo's time: Axon, TLS and BLAKE3 alone",
    ]
    for row in found["rows"]:
        gloo, ours = (f"{row['ideal'] / row[name]:.2f}" if row["mbit"] else "" for name in ("gloo", "axon"))
        rate = f"{row['mbit']:g}" if row["mbit"] else "loopback"
        lines.append(
            f"{row['millions']:6} M{row['members']:9}{rate:>10}{row['gloo']:10.3f}{row['axon']:10.3f}{gloo:>8}{ours:>8}"
            f"{row['axon'] / row['gloo']:13.2f} x {row['tls_and_hash'] / row['gloo']:9.2f} x"
        )
    aims = (
        "aims: link use >= 0.93 among 4, >= 0.75 among 8 at 100 Mbit/s; <= 8 x gloo's time over loopback, 10 M among 4"
    )
    return "\n".join([*lines, aims])
