"""Evidence that trackers hold about a key: convictions with it, each examined here. It changes nobody's book."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from axonp2p.client.ledger.credit_history import ask_voidings
from axonp2p.errors import AxonError
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.log_client import evidence
from axonp2p.ledger.voiding import Voided, Voiding, open_voiding
from axonp2p.table.tracker_lines import TrackerLines, why_none
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.verification.evidence import Examined, examine_voiding

MOST_SHOWN = 100
"""Of one tracker, the newest."""


@dataclass(frozen=True)
class HeldEvidence:
    """One conviction that trackers keep."""

    voiding: Voiding
    """The client's word."""
    held_by: list[str]
    """Trackers in whose logs it is."""
    evidence: bytes
    """The evidence that it stands on; empty when nobody gave it."""
    examined: Examined | None
    """The result of that here."""
    why_not: str = ""
    """Why it shows nothing."""


@dataclass
class _Found:
    voided: Voided
    voiding: Voiding
    lines: list[HttpCaller]


async def ask_evidence(lines: TrackerLines, key: PeerId) -> list[HeldEvidence]:
    """Ask every tracker for what is held against this key, and by this client against others.

    Raises `Refused` or `TrackerUnreachable` when none answers.
    """
    asked = lines.in_order()
    answers = await asyncio.gather(*(_ask(lines, line, key) for line in asked))
    failures = [(line, one) for line, one in zip(asked, answers, strict=True) if isinstance(one, AxonError)]
    if len(failures) == len(asked):
        raise why_none(failures)
    found: dict[bytes, _Found] = {}
    for line, answer in zip(asked, answers, strict=True):
        for voided, voiding in answer if isinstance(answer, list) else []:
            found.setdefault(voided.voided.payload, _Found(voided, voiding, [])).lines.append(line)
    return [await _held(lines, one) for one in found.values()]


async def _ask(lines: TrackerLines, line: HttpCaller, key: PeerId) -> list[tuple[Voided, Voiding]] | AxonError:
    try:
        told = await lines.ask(line, lambda caller: ask_voidings(caller, key, most=MOST_SHOWN))
        opened = [(voided, open_voiding(voided.voided)) for _, voided in told]
        return [(voided, voiding) for voided, voiding in opened if key in (voiding.client, voiding.peer)]
    except AxonError as error:
        return error


async def _held(lines: TrackerLines, found: _Found) -> HeldEvidence:
    """With its evidence, from the first that gives it."""
    why_not, held_by = "", [line.called for line in found.lines]
    for line in found.lines:
        try:
            told = await lines.ask(line, lambda caller: evidence(caller, found.voiding.evidence))
        except AxonError as error:
            why_not = f"its evidence was not told: {error.in_a_line}"
            continue
        try:
            _, examined = await asyncio.to_thread(examine_voiding, found.voided.voided, told.evidence)
        except AxonError as error:  # whoever holds this told the bytes that were signed: no other has better ones
            return HeldEvidence(found.voiding, held_by, told.evidence, None, error.message)
        return HeldEvidence(found.voiding, held_by, told.evidence, examined)
    return HeldEvidence(found.voiding, held_by, b"", None, why_not)
