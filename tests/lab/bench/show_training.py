"""The first show: `examples/text` over home lines, everybody beside the limit, DDP over bare loopback."""

from __future__ import annotations

from typing import Any

from tests.lab.bench.contest import AXON, DDP, EVERYBODY, HIVEMIND, HIVEMIND_8, REFERENCE, Contest
from tests.lab.bench.curve import Curve
from tests.lab.bench.settings import Trial

MEGA = 1e6


def show(contest: Contest, trial: Trial) -> dict[str, Any]:
    """Curves of all, and how they compare."""
    reference = contest.reference(trial)
    curves = [reference]
    for curve in contest.on_lines(trial, EVERYBODY):
        # Those that average gradients at every step learn as DDP does, also (in their favour) in 8 bits.
        as_ddp = curve.name in (DDP, HIVEMIND, HIVEMIND_8)
        curves.append(reference.at_the_pace_of(curve, curve.name) if as_ddp else curve)
    return {"curves": [curve.as_data() for curve in curves], "rows": rows(curves), "aims": aims(curves, trial)}


def rows(curves: list[Curve]) -> list[dict[str, Any]]:
    """One a contestant, the first of which is the reference."""
    reference = curves[0]
    ddp = next(curve for curve in curves if curve.name == DDP)
    return [
        {
            "name": curve.name,
            "loss": curve.loss,
            "loss_over_reference": curve.loss / reference.loss,
            "seconds": curve.seconds,
            "times_reference": curve.seconds / reference.seconds,
            "mb_a_member": curve.passed / curve.members / MEGA,
            "fewer_bytes_than_ddp": ddp.passed / curve.passed,
            "faster_than_ddp": ddp.seconds / curve.seconds,
            "note": curve.note,
        }
        for curve in curves
    ]


def aims(curves: list[Curve], trial: Trial) -> list[dict[str, Any]]:
    """What was aimed at, and what came of it."""
    found = {curve.name: curve for curve in curves}
    ours, reference, ddp = found[AXON], found[REFERENCE], found[DDP]
    faster = 5 if trial.millions == 1 else 10
    found_aims = [
        _aim("held-out loss over the reference's", "<=", 1.03, ours.loss / reference.loss),
        _aim("time over the reference's", "<=", 1.3, ours.seconds / reference.seconds),
        _aim("times fewer bytes than DDP", ">=", 100, ddp.passed / ours.passed),
        _aim("times less time than DDP", ">=", faster, ddp.seconds / ours.seconds),
    ]
    if HIVEMIND_8 in found:
        hivemind = found[HIVEMIND_8].seconds / ours.seconds
        found_aims.append(_aim("times less time than hivemind with 8 bits", ">=", 3, hivemind))
    return found_aims


def _aim(what: str, sign: str, aim: float, value: float) -> dict[str, Any]:
    return {
        "what": what,
        "aim": f"{sign} {aim:g}",
        "value": value,
        "met": value <= aim if sign == "<=" else value >= aim,
    }


def as_text(found: dict[str, Any], trial: Trial) -> str:
    """Tables for people."""
    lines = [
        f"{trial.millions} M parameters, {trial.members} members, {trial.all_steps} steps of {trial.a_step} samples,"
        f" {trial.lines.up:g}/{trial.lines.down:g} Mbit/s, {trial.lines.rtt_ms:g} ms",
        f"{'':20}{'held-out':>9}{'':>8}{'seconds':>10}{'x limit':>9}{'MB each':>10}{'fewer':>9}{'faster than DDP':>17}",
    ]
    for row in found["rows"]:
        lines.append(
            f"{row['name']:20}{row['loss']:9.3f}{row['loss_over_reference'] - 1:+8.1%}{row['seconds']:10.1f}"
            f"{row['times_reference']:8.1f}x{row['mb_a_member']:10.1f}{row['fewer_bytes_than_ddp']:8.1f}x"
            f"{row['faster_than_ddp']:16.1f}x   {row['note']}"
        )
    lines += [f"{aim['what']}: {aim['value']:.3g} (aim {aim['aim']})" for aim in found["aims"]]
    return "\n".join(lines)
