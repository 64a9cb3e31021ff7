"""The second show: one member has a tenth of the others' bandwidth. How much longer does the same training take?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.lab.bench.contest import AXON, DDP, HIVEMIND_8, Contest
from tests.lab.bench.settings import Trial

TENTH = 0.1
NAMES = (DDP, HIVEMIND_8, AXON)


def show(contest: Contest, trial: Trial) -> dict[str, Any]:
    """Seconds a step of each, with equal lines and with one slow one."""
    slow = replace(trial, lines=replace(trial.lines, slowest=TENTH))
    equal = {curve.name: curve for curve in contest.on_lines(trial, NAMES)}
    beside = {curve.name: curve for curve in contest.on_lines(slow, NAMES)}
    rows = [
        {
            "name": name,
            "equal": equal[name].seconds_a_step,
            "one_slow": beside[name].seconds_a_step,
            "longer": beside[name].seconds_a_step / equal[name].seconds_a_step,
            "steps": beside[name].steps,
            "losses": [curve.loss for curve in (equal[name], beside[name]) if curve.points],
        }
        for name in NAMES
        if name in equal and name in beside
    ]
    return {"rows": rows}


def as_text(found: dict[str, Any], trial: Trial) -> str:
    """A table for people."""
    lines = [
        f"one of {trial.members} members at a tenth of the bandwidth",
        f"{'seconds a step':20}{'equal':>9}{'slow':>9}",
    ]
    for row in found["rows"]:
        losses = " -> ".join(f"{loss:.3f}" for loss in row["losses"])
        held_out = f"   held-out loss {losses}" if losses else ""
        lines.append(f"{row['name']:20}{row['equal']:9.3f}{row['one_slow']:9.3f}   {row['longer']:.2f} x{held_out}")
    return "\n".join([*lines, "aim for Axon: <= 1.2 x"])
