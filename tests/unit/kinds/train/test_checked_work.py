"""What a conviction comes to at the client: its evidence kept, and the receipts made void where anybody can see why."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from axonp2p.client.storage.trust_book import TRUST_FILE, TrustBook
from axonp2p.errors import BadSignature
from axonp2p.jobs.spec import NeedSpec
from axonp2p.kinds.train.checked_work import CheckedWork
from axonp2p.ledger.voiding import VOIDING_LIMIT, VoidingHandedIn
from axonp2p.training.round_messages import CheckEnded
from axonp2p.verification.evidence import examine_voiding
from axonp2p.verification.judgement import Judgement, Outcome
from axonp2p.verification.own_proofs import OwnProof
from axonp2p.verification.signed_frames import SignedFrame
from axonp2p.wire.codec import Message, decode_as
from axonp2p.wire.envelope import Signed
from tests.fakes import ManualClock, key_of
from tests.laboratory.convictions import END, LAZY, START, claim, opinion, own, own_ends, said

CLIENT, JOB = key_of("client"), "digits-1"
NAMES = ["heron", "otter", "lynx", "wren"]


def uuid_of(name: str) -> str:
    return f"00000000-0000-4000-8000-{NAMES.index(name):012d}"


class World:
    """The parts around the checks, each as little as it may be."""

    def __init__(self, folder: Path) -> None:
        self.book = TrustBook(folder / TRUST_FILE)
        self.newsd, self.voided, self.told = 0, set[str](), list[Any]()
        means: Any = SimpleNamespace(trust=self.book, key=CLIENT, clock=ManualClock())
        crew: Any = SimpleNamespace(leases={rank: self._lease(name) for rank, name in enumerate(NAMES)})
        journal: Any = SimpleNamespace(
            record=SimpleNamespace(id=JOB),
            folder=SimpleNamespace(path=folder),
            disk=SimpleNamespace(do=lambda work: work()),
            tell=self.told.append,
            afterwards=lambda act: act(),
        )
        convictions: Any = SimpleNamespace(news=self._news)
        settlement: Any = SimpleNamespace(crew=crew, convictions=convictions, voided=self.voided)
        self.checked = CheckedWork(means, settlement, journal)

    def signs(self, name: str, message: Message) -> SignedFrame:
        """As the daemon's frame comes in."""
        one = said(key_of(name), message, CLIENT, JOB, uuid_of(name), name)
        return self.checked.signed(NAMES.index(name), memoryview(one.frame), one.signature)

    def convicts(self) -> CheckEnded:
        """Otter's claim is false, as two have said; these three have come to ends of their own again."""
        own_steps = [("otter", claim(LAZY), [own(LAZY, of=1)])]
        own_steps += [(name, claim(END), own_ends(END, of=NAMES.index(name))) for name in NAMES[2:]]
        proofs = [
            OwnProof(NAMES.index(name), 2, 0, one.step, 2, self.signs(name, report), self.signs(name, one))
            for name, report, several in own_steps
            for one in several
        ]
        return CheckEnded(
            of=1, by=[2, 3], round=2, first=0, last=8, judgement=Judgement(Outcome.CONVICTED), convicted=[1], flops=1,
            report=self.signs("otter", claim(LAZY)), proofs=proofs,
            opinions=[self.signs(name, opinion(END)) for name in NAMES[2:]],
        )  # fmt: skip

    def _news(self) -> None:
        self.newsd += 1

    def _lease(self, name: str) -> Any:
        token: Signed[Any] = Signed(signer=key_of("tracker").peer_id, payload=name.encode(), signature=bytes(64))
        promise = SimpleNamespace(uuid=uuid_of(name), token=token)
        return SimpleNamespace(name=name, row=SimpleNamespace(peer=key_of(name).peer_id), promise=promise)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_conviction_with_evidence_is_written_down_to_be_handed_in(world: World, tmp_path: Path) -> None:
    world.checked.ended(world.convicts())
    (data,) = world.book.convictions()
    handed_in = decode_as(data, VoidingHandedIn, VOIDING_LIMIT)
    voiding, examined = examine_voiding(handed_in.voided, handed_in.evidence)
    assert voiding.spoils == (CLIENT.peer_id, JOB, key_of("otter").peer_id)
    assert [one.name for one in (examined.evidence.report, *examined.evidence.opinions)] == ["otter", "lynx", "wren"]
    assert len(examined.proven) == 3
    assert len(handed_in.tokens) == 3
    assert (world.newsd, world.voided, world.checked.liars) == (1, {"otter"}, {1})
    assert (tmp_path / "evidence" / "otter-round-3.evidence").read_bytes() == handed_in.evidence
    assert world.book.convicted() == {key_of("otter").peer_id}


def test_a_peer_that_says_a_thousand_other_things_is_convicted_all_the_same(world: World) -> None:
    convicted = world.convicts()
    for number in range(100):
        world.signs("otter", msgspec.structs.replace(claim(END), round=3 + number))
        world.signs("otter", msgspec.structs.replace(own(END, of=1), round=3 + number))
    world.signs("otter", claim(END))
    world.signs("otter", own(LAZY, led=START, of=1))
    world.checked.ended(convicted)
    assert len(world.book.convictions()) == 1


def test_without_the_words_of_two_that_signed_its_receipts_stay_valid(world: World) -> None:
    convicted = world.convicts()
    world.checked.ended(dataclasses.replace(convicted, opinions=convicted.opinions[:1], proofs=[]))
    assert world.book.convictions() == []
    assert (world.newsd, world.voided) == (0, set())
    assert world.book.convicted() == {key_of("otter").peer_id}


def test_what_came_to_no_judgement_is_noted_of_nobody(world: World) -> None:
    undecided = dataclasses.replace(world.convicts(), judgement=Judgement(Outcome.UNDECIDED), convicted=[], proofs=[])
    world.checked.ended(undecided)
    assert world.book.all() == {}
    world.checked.ended(dataclasses.replace(undecided, judgement=Judgement(Outcome.UNLIKE)))
    assert [known.passed for known in world.book.all().values()] == [0]


def test_what_another_signed_is_not_taken(world: World) -> None:
    one = said(key_of("otter"), claim(LAZY), CLIENT, "another job", uuid_of("otter"), "otter")
    with pytest.raises(BadSignature):
        world.checked.signed(1, memoryview(one.frame), one.signature)


@pytest.mark.parametrize(
    ("need", "like_by_like"), [({}, False), ({"gpu_memory": 8192}, True), ({"gpu_capability": "8.0"}, True)]
)
def test_a_job_that_asks_for_a_card_in_any_words_is_checked_like_by_like(
    world: World, need: dict[str, Any], like_by_like: bool
) -> None:
    spec: Any = SimpleNamespace(train=SimpleNamespace(checks=0.05), need=NeedSpec(peers=2, **need))
    settings = world.checked.settings(spec)
    assert settings is not None
    assert settings.cards is like_by_like
