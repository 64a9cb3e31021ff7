"""What came of a training: held-out loss over samples, bytes and seconds. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Self


@dataclass(frozen=True)
class Point:
    """All members have done so many steps. Seconds and bytes are counted from when the first of these began.

    Bytes are what passed the members' lines, out or in: what one sends another counts at both.
    """

    steps: int
    seconds: float
    passed: float
    loss: float


@dataclass(frozen=True)
class Curve:
    """One contestant's run."""

    name: str
    members: int
    points: list[Point]
    steps: int
    """Over which these are taken:"""
    seconds_a_step: float
    passed_a_step: float
    """Bytes, of all members together."""
    failed: int = 0
    """Steps that a member took without the others, though it should not have."""
    note: str = ""
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """The last one."""
        return self.points[-1].loss

    @property
    def seconds(self) -> float:
        """Until the last point."""
        return self.points[-1].seconds

    @property
    def passed(self) -> float:
        """Bytes until the last point."""
        return self.points[-1].passed

    def at_the_pace_of(self, measured: Curve, name: str, whose: str) -> Curve:
        """This curve, each step of which takes what one of `measured` took: the loss does not depend on the line.

        `whose` says whose loss it is.
        """
        seconds, passed = measured.seconds_a_step, measured.passed_a_step
        points = [replace(point, seconds=point.steps * seconds, passed=point.steps * passed) for point in self.points]
        note = f"{whose}; seconds and bytes a step measured over {measured.steps} steps"
        note += f"; {measured.note}" if measured.note else ""
        failed = self.failed + measured.failed
        note += f"; {failed} averages failed" if failed else ""
        return Curve(name, self.members, points, measured.steps, seconds, passed, failed, note)

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def of_data(cls, data: dict[str, Any]) -> Self:
        """What `as_data` gave."""
        return cls(**data | {"points": [Point(**point) for point in data["points"]]})


class NoSteps(Exception):
    """A contestant that took no step that could be measured."""


def read_reports(name: str, folder: Path, members: int, *, bare: bool, warm_up: int = 0) -> Curve:
    """A curve out of what members wrote (`Member.report`).

    A step's seconds are the median of all steps but the first `warm_up`, its bytes their mean.
    Only steps that all members took count. Raises `NoSteps` when there are not two.
    """
    paths = [folder / f"{rank}.jsonl" for rank in range(members)]
    if silent := [rank for rank, path in enumerate(paths) if not path.exists()]:
        raise NoSteps(f"{name}: no report of member {silent[0]}")
    reports = [_lines(path) for path in paths]
    rows = list(zip(*reports, strict=False))
    if len(rows) < 3:
        raise NoSteps(f"{name}: members took {len(rows) - 1} steps before they hung")
    began = _moment(rows[0], bare)
    points = []
    for row in rows:
        if "loss" in row[0]:
            at, passed = _moment(row, bare)
            windows = sum(line["windows"] for line in row)
            loss = sum(line["loss"] * line["windows"] for line in row) / windows
            points.append(Point(row[0]["steps"], at - began[0], passed - began[1], loss))
    warm = rows[min(warm_up, len(rows) - 2) :]
    steps = warm[-1][0]["steps"] - warm[0][0]["steps"]
    moments = [_moment(row, bare) for row in warm]
    each = [
        (after[0] - before[0]) / (row[0]["steps"] - last[0]["steps"])
        for (last, row), (before, after) in zip(pairwise(warm), pairwise(moments), strict=True)
    ]
    failed = int(sum(line.get("failed", 0) for line in rows[-1]))
    return Curve(name, members, points, steps, median(each), (moments[-1][1] - moments[0][1]) / steps, failed)


def _moment(row: Sequence[dict[str, float]], bare: bool) -> tuple[float, float]:
    """When the last member was there, and what had passed all lines by then; over loopback each counts all."""
    passed = [line["passed"] for line in row]
    return max(line["at"] for line in row), max(passed) if bare else sum(passed)


def _lines(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
