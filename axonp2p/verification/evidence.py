"""Evidence of a conviction: what its peers signed, in a file that anybody can examine without any network. Pure.

It holds the report in which a member committed to where its steps led, and what those said who did the steps again,
each as it was said and signed; and of each that speaks how it did steps of its own again, to the same end. A reader
comes to the judgement by the same rule as the client did.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import Annotated

import msgspec

from axonp2p.errors import MalformedMessage, Refused
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.said import check_said
from axonp2p.ledger.voiding import EVIDENCE_LIMIT, Voiding, open_voiding
from axonp2p.verification.claims import RoundDone, SegmentRedone
from axonp2p.verification.judgement import MOST_OPINIONS, Claim, Judgement, Opinion, Outcome, claims_of, judge, repeats
from axonp2p.verification.own_proofs import OWN_SEGMENTS, WITNESSES, enough_shown
from axonp2p.verification.signed_frames import SignedFrame, said_by, what_is_said
from axonp2p.wire.codec import Message, decode_as
from axonp2p.wire.envelope import Signed
from axonp2p.wire.quantities import Count


class Evidence(Message, frozen=True):
    """That a peer has lied in a job."""

    job: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    client: PeerId
    """The client of the job."""
    accused: PeerId
    """The member that made the claim, or one that called it false."""
    step: Count
    """Of the round, where the steps began."""
    report: SignedFrame
    """The claim: a `RoundDone`."""
    opinions: Annotated[list[SignedFrame], msgspec.Meta(min_length=1, max_length=MOST_OPINIONS)]
    """Where others were led: a `SegmentRedone` each, in the order in which they were asked."""
    reports: Annotated[list[SignedFrame], msgspec.Meta(max_length=4 * (MOST_OPINIONS + 1))] = []
    """More that these committed to: a `RoundDone` each."""
    proofs: Annotated[list[SignedFrame], msgspec.Meta(max_length=OWN_SEGMENTS * (MOST_OPINIONS + 1))] = []
    """Where some of them were led by steps of their own, out of these reports: a `SegmentRedone` each."""

    @property
    def voices(self) -> list[SignedFrame]:
        """All that is said in it."""
        return [self.report, *self.opinions, *self.reports, *self.proofs]


@dataclass(frozen=True)
class Examined:
    """The result of an examination of evidence."""

    evidence: Evidence
    round: int
    first: int
    last: int
    judgement: Judgement
    proven: frozenset[PeerId]
    """The peers that came to an end of their own again."""
    would_convict: bool
    """Whether the accused has lied if those who speak can be believed."""
    convicts: bool
    """Whether it shows that the accused has lied."""


def read_evidence(data: bytes) -> Evidence:
    """The evidence in a file's bytes. Raises `MessageTooLarge` or `MalformedMessage`."""
    return decode_as(data, Evidence, EVIDENCE_LIMIT)


def examine(evidence: Evidence) -> Examined:
    """Check every signature, and judge anew. Raises `BadSignature`, or `MalformedMessage` for what does not fit."""
    for signed in evidence.voices:
        check_said(said_by(evidence.job, evidence.client, signed), signed.signature)
    peers = [opinion.peer for opinion in evidence.opinions]
    if len({evidence.client, evidence.report.peer, *peers}) != len(peers) + 2:
        raise MalformedMessage("evidence in which a peer speaks twice, or about itself, or the client as a peer")
    report = what_is_said(evidence.report.frame)
    if not isinstance(report, RoundDone):
        raise MalformedMessage("evidence without a claim")
    claim = next((claim for claim in claims_of(report) if claim.start.step == evidence.step), None)
    if claim is None:
        raise MalformedMessage("evidence about steps that nobody committed to")
    opinions = [Opinion(place, _opinion(signed, report, claim)) for place, signed in enumerate(evidence.opinions)]
    if evidence.accused not in (evidence.report.peer, *peers):
        raise MalformedMessage("evidence against a peer that says nothing in it")
    judgement = judge(claim, opinions, more=False)
    proven = _proven(evidence, claim)
    against: set[PeerId] = set()
    if evidence.accused in {peers[place] for place in judgement.false_accusers}:
        against = {evidence.report.peer, *(peers[place] for place in judgement.alike)}
    elif evidence.accused == evidence.report.peer and judgement.outcome is Outcome.CONVICTED:
        against = {peers[place] for place in judgement.against}
    convicts = evidence.accused in proven and len(against & proven) >= WITNESSES
    first, last = claim.start.step, claim.end.step
    return Examined(evidence, report.round, first, last, judgement, proven, bool(against), convicts)


def examine_voiding(signed: Signed[Voiding], data: bytes) -> tuple[Voiding, Examined]:
    """A client's statement of a conviction, when the evidence that it names shows it.

    Raises `PeerMisbehaved` when the one is not about the other, `Refused` when it convicts nobody, and as `examine`.
    """
    voiding = open_voiding(signed)
    if hashlib.sha256(data).digest() != voiding.evidence:
        raise MalformedMessage("that is not the evidence that the client signed")
    evidence = read_evidence(data)
    if (evidence.client, evidence.job, evidence.accused) != voiding.spoils:
        raise MalformedMessage("evidence about another client, job or peer than what was signed")
    examined = examine(evidence)
    if not examined.convicts:
        raise Refused(f"the evidence does not convict {short(voiding.peer)}")
    return voiding, examined


def _proven(evidence: Evidence, disputed: Claim) -> frozenset[PeerId]:
    """The members, other than those in dispute, that were led by their own steps where they had committed to be led.

    By all steps that are shown, which must be as many as there are in a member's reports here, or `OWN_SEGMENTS`.
    """
    rounds: dict[tuple[PeerId, int, int], RoundDone] = {}
    for signed in (evidence.report, *evidence.reports):
        report = what_is_said(signed.frame)
        if not isinstance(report, RoundDone):
            raise MalformedMessage("evidence with a report that is none")
        rounds[signed.peer, report.round, report.attempt] = report
    speakers = {evidence.report.peer, *(opinion.peer for opinion in evidence.opinions)}
    if not speakers.issuperset(signed.peer for signed in (*evidence.reports, *evidence.proofs)):
        raise MalformedMessage("evidence in which others speak of steps of their own")
    shown: dict[PeerId, set[tuple[int, int, int]]] = {peer: set() for peer in speakers}
    failed: set[PeerId] = set()
    for signed in evidence.proofs:
        told = what_is_said(signed.frame)
        if not isinstance(told, SegmentRedone):
            raise MalformedMessage("evidence with a proof that is none")
        own = rounds.get((signed.peer, told.round, told.attempt))
        places = [claim for claim in claims_of(own) if _is_of(told, claim)] if own else []
        places = [claim for claim in places if signed.peer != evidence.report.peer or claim != disputed]
        if any(repeats(claim, Opinion(0, told)) for claim in places):
            shown[signed.peer].add((told.round, told.attempt, told.step))
        else:
            failed.add(signed.peer)
    there = Counter({evidence.report.peer: -1})
    for (peer, _, _), report in rounds.items():
        there[peer] += len(claims_of(report))
    return frozenset(peer for peer in speakers - failed if enough_shown(len(shown[peer]), there[peer]))


def _is_of(told: SegmentRedone, claim: Claim) -> bool:
    return (told.step, told.start) == (claim.start.step, claim.start.name)


def _opinion(signed: SignedFrame, report: RoundDone, claim: Claim) -> SegmentRedone:
    told = what_is_said(signed.frame)
    if not isinstance(told, SegmentRedone) or (told.round, told.attempt, told.step, told.start) != (
        *(report.round, report.attempt),
        *(claim.start.step, claim.start.name),
    ):
        raise MalformedMessage("evidence with an opinion about other steps")
    return told
