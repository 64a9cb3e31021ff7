"""What checks come to for this client: told as events, and kept of each key in its book of trust."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from axonp2p.client.account import JobAccount
from axonp2p.client.crew import LeasedCrew
from axonp2p.client.events import WorkChecked as WorkCheckedEvent
from axonp2p.client.trust_book import Known, TrustBook
from axonp2p.clock import Clock
from axonp2p.errors import MessageTooLarge
from axonp2p.identity.peer_id import PeerId
from axonp2p.jobs.spec import JobSpec
from axonp2p.ledger.said import check_said
from axonp2p.logs import get_logger
from axonp2p.training.checking.desk import Settings
from axonp2p.training.checking.evidence import FRAME_LIMIT, Evidence, SignedFrame, said_by, what_is_said
from axonp2p.training.checking.opinions import Outcome
from axonp2p.training.messages import RoundDone, SegmentRedone
from axonp2p.training.round_messages import WorkChecked
from axonp2p.wire.codec import encode

MOST_SIGNED = 16
"""Words of each peer that are kept: a claim found false may wait some rounds for what is known of its machine."""

log = get_logger(__name__)


class CheckedWork:
    """Of one job."""

    def __init__(self, book: TrustBook, crew: LeasedCrew, account: JobAccount, client: PeerId, clock: Clock) -> None:
        self._book = book
        self._known = book.all()
        self._client = client
        self._signed: dict[int, deque[SignedFrame]] = {}
        self._crew = crew
        self._account = account
        self._clock = clock
        self.liars: set[int] = set()
        """Ranks that were convicted in this job: what they told of their work is not paid for."""

    def settings(self, spec: JobSpec, chance: Callable[[], float] | None = None) -> Settings | None:
        """How this job is checked; None when its author wants none of it. `chance` is the system's own otherwise."""
        if not spec.train.checks:
            return None
        return Settings(
            wished=spec.train.checks,
            memory_bytes=spec.need.memory * 2**20,
            trust_of=lambda rank: self._known.get(self._peer(rank), Known(self._peer(rank))).trust,
            chance=chance or random.SystemRandom().random,
        )

    def signed(self, rank: int, frame: memoryview, signature: bytes) -> None:
        """A peer has signed what its worker says. Raises `BadSignature`, `MalformedMessage`, `MessageTooLarge`."""
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
        check_said(said_by(self._account.record.id, self._client, said), signature)
        self._signed.setdefault(rank, deque(maxlen=MOST_SIGNED)).append(said)

    def show(self, checked: WorkChecked) -> None:
        """A check came to an end."""
        judgement = checked.judgement
        event = WorkCheckedEvent(
            peer=self._name(checked.of),
            by=[self._name(rank) for rank in checked.by],
            round=checked.round,
            first=checked.first,
            last=checked.last,
            outcome=judgement.outcome.name.lower(),
            distance=judgement.distance,
            step=judgement.step,
            convicted=[self._name(rank) for rank in checked.convicted],
            flops=checked.flops,
        )
        self._account.tell(event)
        if judgement.outcome is Outcome.PASSED:
            self._write(partial(self._book.passed, self._peer(checked.of)))
        elif checked.of not in checked.convicted:
            self._write(partial(self._book.doubted, self._peer(checked.of)))
        for rank in (*judgement.contradicted, *judgement.false_accusers):
            if rank not in checked.convicted:
                self._write(partial(self._book.doubted, self._peer(rank)))
        self.liars.update(checked.convicted)
        for rank in checked.convicted:
            which = f"steps {event.first + 1} to {event.last} of round {event.round + 1}"
            why = f"its {which}" if rank == checked.of else f"what it said of {which} of {event.peer}"
            log.warning("convicted", peer=self._name(rank), job=self._account.record.id, why=why)
            now, job = self._clock.now(), self._account.record.id
            self._write(partial(self._book.convict, self._peer(rank), job, why, now))
            self._keep_evidence(rank, checked)

    def _write(self, change: Callable[[], None]) -> None:
        """In the book of trust, and read it again."""
        self._account.disk.do(change)
        self._account.disk.do(self._read)

    def _read(self) -> None:
        self._known = self._book.all()

    def _keep_evidence(self, rank: int, checked: WorkChecked) -> None:
        """In the job's folder, as far as its peers have signed."""
        report = self._frame(checked.of, lambda said: isinstance(said, RoundDone) and said.round == checked.round)
        opinions = [self._frame(by, lambda said: _is_about(said, checked)) for by in checked.by]
        signed = [opinion for opinion in opinions if opinion]
        if report is None or not signed:
            log.warning("no evidence is kept: nothing was signed", peer=self._name(rank))
            return
        evidence = Evidence(
            job=self._account.record.id,
            client=self._client,
            accused=self._peer(rank),
            step=checked.first,
            report=report,
            opinions=signed,
        )
        name = f"{self._name(rank)}-round-{checked.round + 1}.evidence"
        self._account.disk.do(partial(_keep, self._account.folder.path / "evidence" / name, encode(evidence)))

    def _frame(self, rank: int, fits: Callable[[RoundDone | SegmentRedone], bool]) -> SignedFrame | None:
        kept = self._signed.get(rank, ())
        return next((said for said in reversed(kept) if fits(what_is_said(said.frame))), None)

    def _name(self, rank: int) -> str:
        return self._crew.leases[rank].name

    def _peer(self, rank: int) -> str:
        return self._crew.leases[rank].row.peer


def _is_about(said: RoundDone | SegmentRedone, checked: WorkChecked) -> bool:
    return isinstance(said, SegmentRedone) and (said.of, said.round, said.step) == (
        *(checked.of, checked.round),
        checked.first,
    )


def _keep(path: Path, evidence: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(evidence)
    log.warning("evidence is kept", file=str(path))
