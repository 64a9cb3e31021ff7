"""The output of `axon verdict` about evidence. Pure."""

from __future__ import annotations

from typing import Any

from axonp2p.verification.distances import NOWHERE_NEAR
from axonp2p.verification.evidence import Examined
from axonp2p.verification.judgement import Outcome


def verdict_text(examined: Examined) -> str:
    """In sentences."""
    evidence, judgement = examined.evidence, examined.judgement
    whose = evidence.report
    which = f"steps {examined.first + 1} to {examined.last} of round {examined.round + 1}"
    accused = next(one for one in (whose, *evidence.opinions) if one.peer == evidence.accused)
    lines = [
        f"job        {evidence.job}, of {evidence.client}",
        f"claim      {which}, signed by {whose.name} ({whose.peer})",
        *(f"done again {signed.name} ({signed.peer})" for signed in evidence.opinions),
        f"apart      {distance_text(judgement.distance)}; to leave out one step makes {judgement.step:.3g}",
        f"own steps  done again, with the same result, by {_and(_proven(examined)) or 'nobody'}",
    ]
    if not examined.convicts and examined.would_convict:
        why = "it and two of its accusers must have reproduced steps of their own, and the evidence shows that only of "
        return "\n".join([*lines, f"This does not convict {accused.name}: {why}{_and(_proven(examined)) or 'nobody'}."])
    if not examined.convicts:
        return "\n".join([*lines, f"This does not convict {accused.name}: {judgement.outcome.name.lower()}."])
    lied = "the result is not what it said" if accused is whose else "it said that the result is another, and it is not"
    return "\n".join([*lines, f"This convicts {accused.name} ({accused.peer}): {lied}."])


def distance_text(distance: float) -> str:
    """How far an end is from another; no figure where it has no meaning."""
    return "nowhere near" if distance >= NOWHERE_NEAR else f"{distance:.3g} of the movement"


def verdict_data(examined: Examined) -> dict[str, Any]:
    """The same as data."""
    evidence, judgement = examined.evidence, examined.judgement
    return {
        "job": evidence.job,
        "client": evidence.client,
        "accused": evidence.accused,
        "convicts": examined.convicts,
        "claimed_by": evidence.report.peer,
        "redone_by": [signed.peer for signed in evidence.opinions],
        "repeat_themselves": sorted(examined.proven),
        "round": examined.round,
        "first": examined.first,
        "last": examined.last,
        "claim_holds": judgement.outcome is Outcome.PASSED,
        "outcome": judgement.outcome.name.lower(),
        "distance": judgement.distance,
        "step": judgement.step,
    }


def _proven(examined: Examined) -> list[str]:
    evidence = examined.evidence
    return [one.name for one in (evidence.report, *evidence.opinions) if one.peer in examined.proven]


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
