"""The first show: `examples/text` over home lines, everybody beside the limit, DDP over bare loopback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from tests.lab.bench.contest import (
    AXON,
    AXON_LINE,
    AXON_MUON,
    DDP,
    DDP_16,
    DDP_MUON,
    EVERYBODY,
    HIVEMIND,
    HIVEMIND_8,
    MUON,
    OWN_LOSSES,
    REFERENCE,
    Contest,
)
from tests.lab.bench.curve import Curve
from tests.lab.bench.settings import Trial

MEGA = 1e6
EVIDENCE = 2.3
"""A reference that has not come below this held-out loss says nothing about anybody's: half of the way from guessing by
the bytes' own frequencies (2.8) to where 1 M parameters are after 480 steps (1.9)."""


def show(contest: Contest, trial: Trial, seeds: Sequence[int]) -> dict[str, Any]:
    """Curves of all with the first seed, and how they compare over all seeds."""
    runs = [_run(contest, replace(trial, seed=seed)) for seed in seeds]
    curves = [curve.as_data() for curve in runs[0]]
    return {"curves": curves, "seeds": list(seeds), "rows": rows(runs), "aims": aims(runs, trial)}


def _run(contest: Contest, trial: Trial) -> list[Curve]:
    """With one seed; the reference comes first."""
    reference = contest.reference(trial)
    curves = [reference]
    for curve in contest.on_lines(trial, EVERYBODY):
        if curve.name in OWN_LOSSES:
            curves.append(
                contest.losses_of(trial, curve.name).at_the_pace_of(curve, curve.name, "its loss on loopback")
            )
        elif curve.name in (DDP, DDP_16, HIVEMIND, HIVEMIND_8):
            # Those that average gradients at every step learn as DDP does, also (in their favour) in 8 or 16 bits.
            curves.append(reference.at_the_pace_of(curve, curve.name, "DDP's loss"))
        else:
            curves.append(curve)
    return curves


def rows(runs: Sequence[Sequence[Curve]]) -> list[dict[str, Any]]:
    """One a contestant, the first of which is the reference; means over the runs, in each of which it is compared.

    Losses by Muon are compared with those of dense training by Muon, where that took part.
    """
    by_name: dict[str, list[tuple[Curve, Curve, Curve, Curve]]] = {}
    for curves in runs:
        named = {curve.name: curve for curve in curves}
        for curve in curves:
            dense = named.get(DDP_MUON, curves[0]) if curve.name in MUON else curves[0]
            by_name.setdefault(curve.name, []).append((curve, curves[0], named[DDP], dense))
    return [
        {
            "name": name,
            "losses": [curve.loss for curve, *_ in of_seeds],
            "losses_over_reference": [curve.loss / dense.loss for curve, _, _, dense in of_seeds],
            "evidence": fmean(reference.loss for _, reference, _, _ in of_seeds) <= EVIDENCE,
            "seconds": fmean(curve.seconds for curve, *_ in of_seeds),
            "times_reference": fmean(curve.seconds / reference.seconds for curve, reference, _, _ in of_seeds),
            "mb_a_member": fmean(curve.passed / curve.members / MEGA for curve, *_ in of_seeds),
            "fewer_bytes_than_ddp": fmean(ddp.passed / curve.passed for curve, _, ddp, _ in of_seeds),
            "faster_than_ddp": fmean(ddp.seconds / curve.seconds for curve, _, ddp, _ in of_seeds),
            "note": "; ".join(dict.fromkeys(note for curve, _, _, dense in of_seeds if (note := _note(curve, dense)))),
        }
        for name, of_seeds in by_name.items()
    ]


def _note(curve: Curve, dense: Curve) -> str:
    compared = f"its loss is compared with that of {dense.name}" if curve.name in MUON and curve is not dense else ""
    return "; ".join(filter(None, (curve.note, compared)))


def aims(runs: Sequence[Sequence[Curve]], trial: Trial) -> list[dict[str, Any]]:
    """What was aimed at, and what came of it."""
    found = {row["name"]: row for row in rows(runs)}
    found_aims: list[dict[str, Any]] = []
    for name, dense in ((AXON_LINE, DDP), (AXON_MUON, DDP_MUON)):
        if {name, dense} <= found.keys():
            found_aims += _loss_and_time(found[name], f"{name}: ")
    if AXON not in found:
        return found_aims
    ours = found[AXON]
    faster = 5 if trial.millions == 1 else 10
    found_aims += [
        *_loss_and_time(ours),
        _aim("times fewer bytes than DDP", ">=", 100, ours["fewer_bytes_than_ddp"]),
        _aim("times less time than DDP", ">=", faster, ours["faster_than_ddp"]),
    ]
    if HIVEMIND_8 in found:
        hivemind = found[HIVEMIND_8]["seconds"] / ours["seconds"]
        found_aims.append(_aim("times less time than hivemind with 8 bits", ">=", 3, hivemind))
    return found_aims


def _loss_and_time(row: dict[str, Any], of: str = "") -> list[dict[str, Any]]:
    loss = _aim(f"{of}held-out loss over the reference's", "<=", 1.03, fmean(row["losses_over_reference"]))
    if not row["evidence"]:
        loss |= {"met": None, "note": "no evidence"}
    return [loss, _aim(f"{of}time over the reference's", "<=", 1.3, row["times_reference"])]


def _aim(what: str, sign: str, aim: float, value: float) -> dict[str, Any]:
    return {
        "what": what,
        "aim": f"{sign} {aim:g}",
        "value": value,
        "met": value <= aim if sign == "<=" else value >= aim,
    }


def as_text(found: dict[str, Any], trial: Trial) -> str:
    """Tables for people."""
    seeds = ", ".join(map(str, found["seeds"]))
    lines = [
        f"{trial.millions} M parameters, {trial.members} members, {trial.all_steps} steps of {trial.a_step} samples,"
        f" {trial.lines.up:g}/{trial.lines.down:g} Mbit/s, {trial.lines.rtt_ms:g} ms; seeds {seeds}",
    ]
    reference = found["rows"][0]
    if trial.step_ms:
        measured = reference["seconds"] / trial.all_steps * 1000
        lines.append(
            f"steps that sleep until {trial.step_ms:g} ms are over: {REFERENCE} took {measured:.0f} ms a step,"
            " with its exchange and its evaluations"
        )
    lines.append(
        f"{'':24}{'held-out':>9} {'':17}{'over the limit':>15} {'':17}{'seconds':>9}{'x limit':>8}{'MB each':>9}"
        f"{'fewer':>8}{'faster than DDP':>17}"
    )
    for row in found["rows"]:
        over = [part - 1 for part in row["losses_over_reference"]]
        compared = (
            f"{fmean(over):+15.1%} {_range(over, '+.1%'):17}" if row["evidence"] else f"{'no evidence':>15} {'':17}"
        )
        lines.append(
            f"{row['name']:24}{fmean(row['losses']):9.3f} {_range(row['losses'], '.3f'):17}{compared}"
            f"{row['seconds']:9.1f}{row['times_reference']:7.1f}x{row['mb_a_member']:9.1f}"
            f"{row['fewer_bytes_than_ddp']:7.1f}x{row['faster_than_ddp']:16.1f}x   {row['note']}"
        )
    lines += [
        f"{aim['what']}: {aim.get('note') or format(aim['value'], '.3g')} (aim {aim['aim']})" for aim in found["aims"]
    ]
    return "\n".join(lines)


def _range(values: Sequence[float], form: str) -> str:
    """The spread over seeds; empty with one."""
    return f"({min(values):{form}} to {max(values):{form}})" if len(values) > 1 else ""
