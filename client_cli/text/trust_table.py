"""The output of `axon trust`: a line for each checked key; with --ask what trackers keep of a key. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from axonp2p.client.ledger.held_evidence import HeldEvidence
from axonp2p.client.storage.trust_book import KnownKey
from axonp2p.errors import NotFound
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.plain_text import columns, plural
from client_cli.text.render import age_text
from client_cli.text.verdict_text import verdict_data, verdict_text


def trust_text(known: Sequence[KnownKey], names: Mapping[str, str], *, now: float) -> str:
    """The table; `names` are those that keys had in jobs. `now` is Unix time."""
    if not known:
        return "No checks yet: the work of peers is checked while a job trains."
    rows = [[names.get(one.peer, "-"), short(one.peer), one.in_words, str(one.checks), _why(one, now)] for one in known]
    table = columns(["peer", "id", "trust", "checks", ""], rows, right=(3,))
    convicted = sum(one.convicted_at is not None for one in known)
    return f"{table}\n{plural(len(known), 'peer')}, {convicted} convicted"


def known_data(one: KnownKey) -> dict[str, Any]:
    """The same as data."""
    return dataclasses.asdict(one) | {"trust": one.in_words}


def find_one(known: Sequence[KnownKey], beginning: str) -> KnownKey:
    """The key that begins like this. Raises `NotFound`, also when several do."""
    found = [one for one in known if one.peer.startswith(beginning.lower())]
    if len(found) != 1:
        several = f"{len(found)} peers begin" if found else "no peer that was checked begins"
        raise NotFound(f"{several} with {beginning!r}", fix="axon trust      (shows their ids)")
    return found[0]


def _why(one: KnownKey, now: float) -> str:
    if one.convicted_at is None:
        return ""
    return f"{age_text(now - one.convicted_at)} ago in {one.job}: {one.why}"


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
