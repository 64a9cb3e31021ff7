"""What `axon verdict` says of evidence. Pure."""

from __future__ import annotations

from typing import Any

from axonp2p.training.checking.evidence import Examined
from axonp2p.training.checking.opinions import Outcome


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
        f"apart      {judgement.distance:.3g} of the movement; to leave out one step makes {judgement.step:.3g}",
    ]
    if not examined.convicts:
        return "\n".join([*lines, f"This does not convict {accused.name}: {judgement.outcome.name.lower()}."])
    lied = "they do not lead where it said" if accused is whose else "it said that they lead elsewhere, and they do not"
    return "\n".join([*lines, f"This convicts {accused.name} ({accused.peer}): {lied}."])


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
        "round": examined.round,
        "first": examined.first,
        "last": examined.last,
        "claim_holds": judgement.outcome is Outcome.PASSED,
        "outcome": judgement.outcome.name.lower(),
        "distance": judgement.distance,
        "step": judgement.step,
    }
