"""Axon as a contestant: real daemons and sandboxed workers on a ground, and the curve of a job's events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tests.lab.bench.curve import Curve, Point
from tests.lab.bench.ground import Ground
from tests.lab.bench.jobs import text_memory_mb, write_text
from tests.lab.bench.settings import Trial
from tests.lab.swarm import LabSwarm, Told

DENSE: dict[str, object] = {"compression": "none", "overlap": False}
AUTO: dict[str, object] = {"compression": "auto", "bytes": "sparing"}
LINE: dict[str, object] = {"compression": "auto", "bytes": "line"}


class Ours:
    """On one ground, in a folder of their own."""

    def __init__(self, ground: Ground, folder: Path) -> None:
        self._ground = ground
        self._folder = folder
        self._count = 0

    def train(self, trial: Trial, name: str, train: dict[str, object]) -> Curve:
        """All rounds of `examples/text`, on a new swarm; `train` as in `write_text`."""
        self._count += 1
        home = self._folder / f"axon-{self._count}"
        with LabSwarm(self._ground, home, memory_mb=text_memory_mb(trial.millions)) as swarm:
            swarm.start(*range(trial.members))
            job = write_text(home / "job", trial, **train)
            return curve_of(swarm.submit(job), name, trial, self._ground.passed)


def curve_of(events: Iterable[Told], name: str, trial: Trial, passed: Callable[[], int]) -> Curve:
    """What the job's events come to; the clock starts when the last worker is ready. `passed`: bytes until now."""
    began, before = 0.0, 0
    points: list[Point] = []
    told: list[Told] = []
    for event in events:
        told.append(event)
        match event["event"]:
            case "peer_ready" if not points:
                began, before = event["at"], passed()
            case "round_finished":
                steps = (event["round"] + 1) * trial.steps
                points.append(Point(steps, event["at"] - began, passed() - before, event["metrics"]["loss"]))
    last = points[-1]
    more = {"events": [event for event in told if event["event"] not in {"round_progress", "round_finished"}]}
    each = (last.seconds / last.steps, last.passed / last.steps)
    return Curve(name, trial.members, points, last.steps, *each, more=more)
