"""Daemons that stand by what their workers say, and daemons that do not, over real sessions."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from axonp2p.client.leasing.lease import Lease
from axonp2p.client.ledger.receipts import ReceiptOffice
from axonp2p.client.run.blob_office import BlobOffice
from axonp2p.client.run.crew import LeasedCrew
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_store import JobStore
from axonp2p.client.storage.trust_book import TrustBook
from axonp2p.clock import SystemClock
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.messages import EndLease, FromWorker, ToWorker
from axonp2p.kinds.train.checked_work import CheckedWork
from axonp2p.kinds.train.record import TrainRecord
from axonp2p.ledger.said import Said, sign_said
from axonp2p.training.coordinator.coordinator import Coordinator
from axonp2p.training.messages import Prepare, Prepared, StartRound, ToWorkerTraining
from axonp2p.training.options import ExchangeOptions
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import MemberDropped, RoundAccepted
from axonp2p.training.rounds.machine import Rounds
from axonp2p.training.spot_checks.scheduler import CheckSettings
from axonp2p.transport.sessions.session import Session
from axonp2p.verification.claims import RoundDone
from axonp2p.verification.rates import Trust
from axonp2p.wire.codec import Message, decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame
from tests.fakes import AtOnce, ManualClock, key_of
from tests.unit.client.conftest import Daemon
from tests.unit.client.run.test_sending import lease_from
from tests.unit.training.conversation import FIRST, SECOND, STEPS, round_done
from tests.unit.training.rounds.test_last_checks import marks_of
from tests.unit.training.written_model import plain_layout

JOB, CLIENT = "digits-1", key_of("client").peer_id


class Working(Daemon):
    """One whose worker trains at once; `signs` says of the daemon how."""

    def __init__(self, name: str, signs: str = "truly") -> None:
        super().__init__()
        self.key, self._signs = key_of(name), signs
        self.reservation = ""

    async def _answer(self, session: Session, message: Any, payload: bytes) -> None:
        await super()._answer(session, message, payload)
        if not isinstance(message, ToWorker):
            return
        match decode(split_frame(payload).header, ToWorkerTraining, HEADER_LIMIT):
            case Prepare():
                await self._say(session, Prepared(state=FIRST, parameters=100, values=100), plain_layout(100))
            case StartRound() as order:
                done = round_done(order.round, order.attempt, SECOND, members=len(order.members))
                await self._say(session, msgspec.structs.replace(done, marks=marks_of(order)))

    async def _say(self, session: Session, message: Message, payload: bytes = b"") -> None:
        frame = pack_frame(message, payload)
        said = Said(
            job=JOB if self._signs == "truly" else "another", reservation=self.reservation, client=CLIENT,
            peer=self.key.peer_id, sha256=hashlib.sha256(frame).digest(),
        )  # fmt: skip
        wanted = isinstance(message, RoundDone) and self._signs != "never"
        await session.send(FromWorker(signature=sign_said(self.key, said) if wanted else b""), frame)


class Office:
    """Nothing is paid for here."""

    def given_up(self, lease: Lease) -> None:
        pass


async def let_go(lease: Lease) -> None:
    pass


@pytest.mark.parametrize(
    ("signs", "why"),
    [
        ("never", "it broke the protocol: its daemon did not sign what it reported"),
        ("wrongly", "signature"),
        ("truly", ""),
    ],
)
async def test_who_does_not_sign_its_report_leaves_with_the_first_round_and_is_told_why(
    signs: str, why: str, start_peer: Any, tmp_path: Path
) -> None:
    daemons = {name: Working(name) for name in ("otter", "fox")} | {"wren": Working("wren", signs)}
    leases = {}
    for rank, (name, daemon) in enumerate(daemons.items()):
        leases[rank] = await lease_from(await start_peer(name, daemon), name)
        daemon.reservation = leases[rank].promise.uuid
    record = TrainRecord(
        id=JOB, name="digits", folder=str(tmp_path), spec={"name": "digits"}, state=JobState.RUNNING, created=0.0,
        updated=0.0, peers_wanted=3, rounds=1,
    )  # fmt: skip
    folder = JobStore(tmp_path).create(record)
    journal = JobJournal(folder, record, ManualClock(), lambda event: None, AtOnce())
    blobs = BlobOffice(SystemClock(), lambda event: None)
    crew = LeasedCrew(leases, folder, AtOnce(), cast(ReceiptOffice, Office()), let_go, blobs)
    means: Any = SimpleNamespace(trust=TrustBook(tmp_path / "trust.db"), key=key_of("client"), clock=ManualClock())
    settlement: Any = SimpleNamespace(crew=crew)  # nobody is convicted here
    crew.signed = CheckedWork(means, settlement, journal).signed
    plan = TrainPlan(JOB, "task.py", 4, 1, STEPS, 8, 1, options=ExchangeOptions(exchange_every=STEPS, overlap=False))
    checks = CheckSettings(0.01, 2**30, lambda _: Trust(), lambda: 0.99)
    seen: list[Any] = []

    def show(sight: Any) -> None:
        seen.append(sight)
        if isinstance(sight, MemberDropped):
            crew.dismiss(sight.rank, sight.reason)

    coordinator = Coordinator(Rounds(plan, crew.present, checks=checks), crew, ManualClock(), show)
    crew.work_for(coordinator)
    async with asyncio.timeout(10):
        result = await coordinator.train()
    await crew.release_all()
    dropped = [sight for sight in seen if isinstance(sight, MemberDropped)]
    assert [sight.rank for sight in dropped] == [2] * bool(why)
    assert all(why in sight.reason for sight in dropped)
    (accepted,) = [sight for sight in seen if isinstance(sight, RoundAccepted)]
    assert set(accepted.reports) == set(result.members) == ({0, 1} if why else {0, 1, 2})
    if signs == "never":
        assert EndLease(reason=why) in daemons["wren"].heard
    assert EndLease() in daemons["otter"].heard
