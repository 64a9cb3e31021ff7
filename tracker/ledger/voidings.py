"""Convictions that clients hand in: each believed when its evidence convicts, then stored, and told to whoever asks.

The client's word alone is worth nothing here. Every signature in the evidence is checked and the judgement made anew by
the rule that the client used; and each peer that speaks in it must have been reserved for this client, by this tracker
or by one that it trusts, as tokens show.
The store has one entry of the log for each client, job and peer, and beside it the evidence, named by its hash.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import sqlite_utils

from axonp2p.errors import LogDamaged, NotFound, PeerMisbehaved, Refused
from axonp2p.identity.peer_id import short
from axonp2p.ledger.entry import decode_entry
from axonp2p.ledger.voiding import EvidenceTold, Voided, Voiding, VoidingHandedIn, VoidingKept
from axonp2p.verification.evidence import Evidence, examine_voiding, read_evidence
from tracker.ledger.foreign_tokens import token_for
from tracker.ledger.intake import NOBODY, TrackerTrust
from tracker.ledger.known_reservations import Brought, KnownReservation, KnownReservations, open_tokens
from tracker.storage.log_check import evidence_bytes
from tracker.storage.log_store import Appender, TakenBack, good_entry, nodes

_REASON_LENGTH = 300


@dataclass(frozen=True)
class Opened:
    """The voiding that was handed in, once its evidence convicts."""

    handed_in: VoidingHandedIn
    voiding: Voiding
    evidence: Evidence
    brought: Brought


def open_handed_in(handed_in: VoidingHandedIn) -> Opened | str:
    """Examine it, or say why it is not believed: some milliseconds of work, for a thread."""
    try:
        voiding, examined = examine_voiding(handed_in.voided, handed_in.evidence)
    except (PeerMisbehaved, Refused) as error:
        return error.message[:_REASON_LENGTH]
    return Opened(handed_in, voiding, examined.evidence, open_tokens(handed_in.tokens))


def store_voiding(
    database: sqlite_utils.Database, opened: Opened, trust: TrackerTrust = NOBODY
) -> tuple[VoidingKept, TakenBack]:
    """Append the entry, unless there is one of the same client, job and peer; and what counts no more."""
    appender, voiding = Appender(database), opened.voiding
    nothing = TakenBack(voiding.client, voiding.peer)
    if appender.is_voided(voiding.spoils):
        return VoidingKept(new=False), nothing
    promises = KnownReservations(database, opened.brought)
    stands_on: dict[str, KnownReservation] = {}
    try:
        for signed in opened.evidence.voices:
            promised = promises.that_fits(signed.reservation, voiding.client, signed.peer)
            if not promised.is_about(voiding.client, signed.peer):
                raise Refused(f"{short(signed.peer)} was not reserved for this client, and speaks in the evidence")
            if not trust.stands(promised.token.issuer, voiding.client, signed.peer):
                # Keys cost nothing: only a tracker that reserves machines of its table knows that one was there.
                raise Refused(
                    f"{short(signed.peer)} speaks in the evidence, and was reserved by {short(promised.token.issuer)},"
                    " which is no tracker that this one trusts"
                )
            stands_on[signed.reservation] = promised
    except Refused as error:
        return VoidingKept(new=False, reason=error.message[:_REASON_LENGTH]), nothing
    for promised in stands_on.values():
        promises.keep(promised)
    handed_in = opened.handed_in
    taken_back = appender.void(Voided(voided=handed_in.voided), voiding, relayed=handed_in.relayed)
    database.execute("INSERT OR IGNORE INTO evidence VALUES (?, ?)", [voiding.evidence, handed_in.evidence])
    appender.finish()
    return VoidingKept(new=True), taken_back


def count_convictions(database: sqlite_utils.Database) -> int:
    """How many entries of the log are convictions."""
    found = database.execute("SELECT count(*) FROM receipts INDEXED BY receipts_voiding WHERE counts = -1")
    count: int = found.fetchone()[0]
    return count


def handed_in_again(database: sqlite_utils.Database, number: int) -> VoidingHandedIn | None:
    """A stored one, for another tracker; None when it, or its evidence, is damaged or lacking."""
    try:
        entry = decode_entry(good_entry(database, number, nodes(database)))
        assert isinstance(entry, Voided)
        told = tell_evidence(database, Voiding.in_entry(entry).evidence)
    except (NotFound, LogDamaged):
        return None
    return VoidingHandedIn(voided=entry.voided, evidence=told.evidence, tokens=told.tokens, relayed=True)


def tell_evidence(database: sqlite_utils.Database, sha256: bytes) -> EvidenceTold:
    """Evidence with the tokens that it stands on. Raises `NotFound`; `LogDamaged` when it is another than it was."""
    data = evidence_bytes(database, sha256)
    if data is None:
        raise NotFound("there is no such evidence here")
    if hashlib.sha256(data).digest() != sha256:
        raise LogDamaged("the evidence was changed on this tracker's disk", fix="ask another tracker")
    evidence = read_evidence(data)  # examined before it was stored
    tokens = (token_for(database, one.reservation, evidence.client, one.peer) for one in evidence.voices)
    return EvidenceTold(evidence=data, tokens=list(dict.fromkeys(filter(None, tokens))))
