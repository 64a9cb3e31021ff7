"""The results of checks for this client: told as events, and kept of each key in its book of trust."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from axonp2p.client.leasing.hiring import Means
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.trust_book import known_of
from axonp2p.errors import MessageTooLarge, PeerMisbehaved
from axonp2p.kinds.train.check_events import CheckOutcome, WorkChecked
from axonp2p.kinds.train.section import TrainJob
from axonp2p.ledger.said import check_said
from axonp2p.ledger.voiding import EVIDENCE_LIMIT, Voiding, VoidingHandedIn
from axonp2p.logs import get_logger
from axonp2p.training.round_messages import CheckEnded
from axonp2p.training.spot_checks.scheduler import CheckSettings
from axonp2p.verification.claims import RoundDone
from axonp2p.verification.evidence import Evidence, examine
from axonp2p.verification.judgement import Outcome
from axonp2p.verification.signed_frames import FRAME_LIMIT, SignedFrame, said_by, what_is_said
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import sign

_OUTCOMES: dict[Outcome, CheckOutcome] = {
    Outcome.PASSED: "passed",
    Outcome.CONVICTED: "convicted",
    Outcome.UNLIKE: "unlike",
    Outcome.UNDECIDED: "undecided",
    Outcome.WITHHELD: "withheld",
}
"""As events name them: those that a check ends with."""

log = get_logger(__name__)


class CheckedWork:
    """Of one job."""

    def __init__(self, means: Means, settlement: JobSettlement, journal: JobJournal) -> None:
        self._book = book = means.trust
        self._known = book.all()
        self._key, self._clock = means.key, means.clock
        self._client = means.key.peer_id
        self._settlement = settlement
        self._crew = settlement.crew
        self._journal = journal
        self.liars: set[int] = set()
        """Ranks that were convicted in this job: what they told of their work is not paid for."""
        self.unproven: set[tuple[int, int]] = set()
        """Rounds, and ranks whose work in them was not handed over, or led others elsewhere."""
        self.helped: Mapping[int, int] = {}
        """Operations that ranks spent on others' steps after the last round that they reported."""

    def settings(self, spec: TrainJob, chance: Callable[[], float] | None = None) -> CheckSettings | None:
        """How this job is checked; None when its author wants none of it. `chance` is the system's own otherwise."""
        if not spec.train.checks:
            return None
        return CheckSettings(
            wished=spec.train.checks,
            memory_bytes=spec.need.memory * 2**20,
            trust_of=lambda rank: known_of(self._peer(rank), self._known).trust,
            chance=chance or random.SystemRandom().random,
            cards=spec.need.wants_gpu,
        )

    def signed(self, rank: int, frame: memoryview, signature: bytes) -> SignedFrame:
        """A frame of a peer's worker, as its daemon has signed it, which goes with its message to the judge.

        Nothing is kept here: a peer could send so much unasked that the frames that were asked for are gone.
        Raises `BadSignature`, `MalformedMessage`, `MessageTooLarge`.
        """
        if len(frame) > FRAME_LIMIT:
            raise MessageTooLarge(f"{len(frame)} bytes were signed; at most {FRAME_LIMIT}")
        what_is_said(frame)
        lease = self._crew.leases[rank]
        said = SignedFrame(
            peer=lease.row.peer,
            name=lease.name,
            reservation=lease.promise.uuid,
            frame=bytes(frame),
            signature=signature,
        )
        check_said(said_by(self._journal.record.id, self._client, said), signature)
        return said

    def to_be_paid(self, reports: Mapping[int, RoundDone], *, last: bool) -> dict[int, RoundDone]:
        """The reports of a round whose members get receipts. In the last round nothing can be shown later any more."""
        honest = {rank: report for rank, report in reports.items() if rank not in self.liars}
        if not last:
            return honest
        return {
            rank: msgspec.structs.replace(report, flops=report.flops + self.helped.get(rank, 0))
            for rank, report in honest.items()
            if (report.round, rank) not in self.unproven
        }

    def ended(self, checked: CheckEnded) -> None:
        """A check came to an end."""
        judgement = checked.judgement
        event = WorkChecked(
            peer=self._name(checked.of),
            by=[self._name(rank) for rank in checked.by],
            round=checked.round,
            first=checked.first,
            last=checked.last,
            outcome=_OUTCOMES[judgement.outcome],
            distance=judgement.distance,
            step=judgement.step,
            convicted=[self._name(rank) for rank in checked.convicted],
            flops=checked.flops,
        )
        self._journal.tell(event)
        if judgement.outcome is Outcome.PASSED:
            self._journal.disk.do(partial(self._book.passed, self._peer(checked.of)))
        elif judgement.outcome is not Outcome.UNDECIDED and checked.of not in checked.convicted:
            self._journal.disk.do(partial(self._book.doubted, self._peer(checked.of)))
        for rank in (*judgement.contradicted, *judgement.false_accusers):
            if rank not in checked.convicted:
                self._journal.disk.do(partial(self._book.doubted, self._peer(rank)))
        self.liars.update(checked.convicted)
        if judgement.outcome in (Outcome.WITHHELD, Outcome.UNLIKE):
            self.unproven.add((checked.round, checked.of))
        for rank in checked.convicted:
            which = f"steps {event.first + 1} to {event.last} of round {event.round + 1}"
            why = f"its {which}" if rank == checked.of else f"what it said of {which} of {event.peer}"
            log.warning("convicted", peer=self._name(rank), job=self._journal.record.id, why=why)
            now, job = self._clock.now(), self._journal.record.id
            self._journal.disk.do(partial(self._book.convict, self._peer(rank), job, why, now))
            self._keep_evidence(rank, checked)
        self._journal.disk.do(self._read)

    def _read(self) -> None:
        self._known = self._book.all()

    def _keep_evidence(self, rank: int, checked: CheckEnded) -> None:
        """In the job's folder, as far as its peers have signed."""
        report = checked.report
        if report is None or not checked.opinions:
            log.warning("no evidence is kept: nothing was signed", peer=self._name(rank))
            return
        reports = {(proof.by, proof.round, proof.attempt): proof.report for proof in checked.proofs}
        evidence = Evidence(
            job=self._journal.record.id,
            client=self._client,
            accused=self._peer(rank),
            step=checked.first,
            report=report,
            opinions=list(checked.opinions),
            reports=[one for one in reports.values() if one and one != report],
            proofs=[proof.said for proof in checked.proofs if proof.said],
        )
        name, data = f"{self._name(rank)}-round-{checked.round + 1}.evidence", encode(evidence)
        self._journal.disk.do(partial(_keep, self._journal.folder.path / "evidence" / name, data))
        if not _convicts(evidence):
            log.warning("its receipts stay valid: not enough was signed", peer=self._name(rank))
        elif len(data) > EVIDENCE_LIMIT:
            log.warning("its receipts stay valid: no ledger takes so much evidence", bytes=len(data), file=name)
        else:
            self._void(rank, data, [checked.of, *checked.by])

    def _void(self, rank: int, evidence: bytes, voices: list[int]) -> None:
        """Have trackers told that what this peer earned in the job counts no more."""
        word = Voiding(
            client=self._client,
            job=self._journal.record.id,
            peer=self._peer(rank),
            evidence=hashlib.sha256(evidence).digest(),
        )
        tokens = dict.fromkeys(encode(self._crew.leases[voice].promise.token) for voice in voices)
        handed_in = VoidingHandedIn(voided=sign(self._key, word), evidence=evidence, tokens=list(tokens))
        self._journal.disk.do(partial(self._book.add_conviction, encode(handed_in)))
        self._journal.afterwards(self._settlement.convictions.news)
        self._settlement.voided.add(self._name(rank))

    def _name(self, rank: int) -> str:
        return self._crew.leases[rank].name

    def _peer(self, rank: int) -> str:
        return self._crew.leases[rank].row.peer


def _convicts(evidence: Evidence) -> bool:
    """Whether anybody who examines it comes to the judgement that was made here."""
    try:
        return examine(evidence).convicts
    except PeerMisbehaved:
        return False


def _keep(path: Path, evidence: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(evidence)
    log.warning("evidence is kept", file=str(path))
