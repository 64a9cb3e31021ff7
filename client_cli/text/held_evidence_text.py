"""What `axon trust --ask` shows: each conviction that trackers keep, as it was examined here. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from axonp2p.client.ledger.held_evidence import HeldEvidence
from axonp2p.identity.peer_id import PeerId, short
from client_cli.text.verdict_text import verdict_data, verdict_text


def held_text(key: PeerId, held: Sequence[HeldEvidence]) -> str:
    """A paragraph for each."""
    if not held:
        return f"No tracker that answers holds evidence about {key}."
    paragraphs = [_paragraph(one) for one in held]
    last = "This is evidence, not a verdict: your own book (axon trust) holds only what your own jobs have found."
    return "\n\n".join([*paragraphs, last])


def held_data(one: HeldEvidence, file: Path | None = None) -> dict[str, Any]:
    """The same as data."""
    voiding = one.voiding
    data: dict[str, Any] = {"client": voiding.client, "job": voiding.job, "peer": voiding.peer}
    data |= {"evidence": voiding.evidence.hex(), "held_by": one.held_by, "why_not": one.why_not}
    data["examined"] = verdict_data(one.examined) if one.examined else None
    return data | ({"file": str(file)} if file else {})


def file_name(one: HeldEvidence) -> str:
    """For its evidence, when it is written down: nothing of what a stranger wrote stands in it."""
    return f"{short(one.voiding.peer)}-{one.voiding.evidence.hex()[:16]}.evidence"


def _paragraph(one: HeldEvidence) -> str:
    held_by = f"held by    {', '.join(one.held_by)}"
    if one.examined is not None:
        return f"{held_by}\n{verdict_text(one.examined)}"
    voiding = one.voiding
    return (
        f"{held_by}\njob        {voiding.job}, of {voiding.client}\n"
        f"That client says that {voiding.peer} was convicted in it, and shows nothing: {one.why_not}."
    )
