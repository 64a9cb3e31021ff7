"""A peer looks up its receipts in the logs of real trackers."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from axonp2p.errors import AxonError, BadSignature, Busy, TooOften
from axonp2p.ledger.balances import credits_of
from axonp2p.ledger.ledger_client import balances, hand_in
from axonp2p.ledger.log_client import inclusion
from axonp2p.ledger.log_messages import InclusionTold
from axonp2p.ledger.receipt import Balances
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.envelope import encode_signed
from peer_daemon.earnings.log_looker import LogLooker
from peer_daemon.earnings.proofs import ANY, NEWEST, SETTLED_AFTER_S, Proofs
from peer_daemon.earnings.receipts_book import ReceiptsBook
from peer_daemon.lending.leases import LentSlot
from tests.fakes import ManualClock, make_receipt
from tests.unit.tracker.conftest import Running, start_tracker
from tests.unit.tracker.logs import ADA, CLIENT, reserved, rewrite


@dataclass
class Peer:
    """Ada's daemon, as far as it has receipts and looks them up."""

    book: ReceiptsBook
    proofs: Proofs
    looker: LogLooker
    lines: TrackerLines
    clock: ManualClock

    async def earns(self, lab: Running, rounds: int, *, handed_in: bool = True, by: str = "") -> None:
        """A job of so many rounds; its receipts are acknowledged, also when they were given to nobody."""
        uuid, issuer = await reserved(lab, ADA), lab.tracker.key.peer_id
        lease = LentSlot(
            uuid,
            issuer,
            ADA.peer_id,
            CLIENT.peer_id,
            "job-1",
            "train",
            until=10**10,
            cores=1,
            memory_mb=1,
            disk_mb=1,
            token=b"t",
        )
        for number in range(1, rounds + 1):
            self.book.sign(encode_signed(CLIENT, make_receipt(CLIENT, ADA, uuid, number)), lease)
        waiting = self.book.waiting(issuer, issuer)
        if handed_in:
            await hand_in(lab.caller, [one.doubly for one in waiting])
        self.book.settle(waiting, by or issuer)
        lab.clock.time += 2  # heads are told for a second


def make_peer(home: Path, clock: ManualClock, *labs: Running) -> Peer:
    home.mkdir(exist_ok=True)
    book, proofs = ReceiptsBook(home / "receipts.db", ADA, clock), Proofs()
    lines = TrackerLines(TrackerHealth([str(lab.address) for lab in labs]), clock, random.Random(1))
    looker = LogLooker(home, book, lines, ADA.peer_id, clock, random.Random(1), proofs)
    return Peer(book, proofs, looker, lines, clock)


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Running]:
    (tmp_path / "tracker").mkdir()
    running = await start_tracker(tmp_path / "tracker")
    yield running
    await running.stop()


@pytest.fixture
async def peer(tmp_path: Path, lab: Running) -> AsyncIterator[Peer]:
    made = make_peer(tmp_path / "peer", lab.clock, lab)
    yield made
    made.book.close()
    await made.lines.close()


async def test_some_receipts_are_proved_and_the_trackers_sum_is_told(peer: Peer, lab: Running):
    await peer.earns(lab, 50)
    await peer.looker.look()
    (found,) = peer.proofs.told().logs
    assert NEWEST < found.proved <= NEWEST + ANY
    assert (found.tracker, found.entries, found.wrong) == (lab.address.host_port, 50, "")
    assert found.counts == pytest.approx(credits_of(50 * 10**12))
    assert found.at == lab.clock.now()
    await peer.earns(lab, 3)
    await peer.looker.look()
    (found,) = peer.proofs.told().logs
    assert (found.entries, found.wrong) == (53, "")


async def test_a_receipt_that_a_tracker_took_and_does_not_have_is_told_once_it_had_time_to_come(
    peer: Peer, lab: Running
):
    await peer.earns(lab, 2, handed_in=False)
    await peer.looker.look()
    (found,) = peer.proofs.told().logs
    assert (found.proved, found.wrong) == (0, "")
    lab.clock.time += SETTLED_AFTER_S
    await peer.looker.look()
    (found,) = peer.proofs.told().logs
    assert found.wrong.startswith("a receipt of job-1 is not proved to be in its log: ")
    assert "no such entry" in found.wrong


async def test_an_honest_tracker_that_never_got_a_receipt_is_not_called_false(peer: Peer, lab: Running):
    await peer.earns(lab, 2, handed_in=False, by=CLIENT.peer_id)
    lab.clock.time += 2 * SETTLED_AFTER_S
    await peer.looker.look()
    (found,) = peer.proofs.told().logs
    assert (found.proved, found.wrong) == (0, "")


async def test_a_log_that_was_rewritten_is_named_also_after_a_restart(peer: Peer, lab: Running, tmp_path: Path):
    await peer.earns(lab, 5)
    await peer.looker.look()
    await lab.stop()
    rewrite(tmp_path / "tracker", lambda entries: entries[::-1])
    again = await start_tracker(tmp_path / "tracker", lab.clock)
    restarted = make_peer(tmp_path / "peer", lab.clock, again)
    try:
        await restarted.looker.look()
        (found,) = restarted.proofs.told().logs
        assert found.wrong.startswith("its log is false: ")
    finally:
        restarted.book.close()
        await restarted.lines.close()
        await again.stop()


@pytest.mark.parametrize(
    ("answer", "proved", "wrong"),
    [
        (BadSignature("tracker lab does not prove\nthat it has the receipt"), 2, "a receipt of job-1 is not proved"),
        (Busy("too much waits to be stored"), 2, ""),
        (TooOften("that is more than your share"), 2, ""),
    ],
)
async def test_a_false_proof_is_told_at_once_and_a_busy_tracker_is_no_liar(
    peer: Peer, lab: Running, monkeypatch: pytest.MonkeyPatch, answer: AxonError, proved: int, wrong: str
):
    asked: list[bytes] = []

    async def proves_two(line: HttpCaller, entry: bytes) -> InclusionTold:
        asked.append(entry)
        if len(asked) > proved:
            raise answer
        return await inclusion(line, entry)

    await peer.earns(lab, 50)
    monkeypatch.setattr("peer_daemon.earnings.log_looker.inclusion", proves_two)
    await peer.looker.look()
    (found,) = peer.proofs.told().logs
    assert found.proved == proved
    assert found.wrong.startswith(wrong)
    assert bool(found.wrong) == bool(wrong)
    assert "\n" not in found.wrong


async def test_when_no_tracker_answers_that_is_said_and_nothing_else(peer: Peer, lab: Running):
    await peer.earns(lab, 1)
    await lab.stop()
    await peer.looker.look()
    told = peer.proofs.told()
    assert (told.logs, told.silent_at) == ([], lab.clock.now())
    assert lab.address.host_port in told.silent
    assert not peer.proofs.is_due(lab.clock.now() + 1, peer.book.earnings.acknowledged)


async def test_the_next_one_is_asked_when_one_is_dead(tmp_path: Path, lab: Running):
    (tmp_path / "other").mkdir()
    dead = await start_tracker(tmp_path / "other", lab.clock)
    await dead.stop()
    peer = make_peer(tmp_path / "peer", lab.clock, dead, lab)
    try:
        await peer.earns(lab, 1)
        for _ in range(2):
            await peer.looker.look()
            assert [one.tracker for one in peer.proofs.told().logs] == [lab.address.host_port]
    finally:
        peer.book.close()
        await peer.lines.close()


async def test_a_damaged_file_of_heads_is_told(peer: Peer, lab: Running, tmp_path: Path):
    await peer.earns(lab, 1)
    (tmp_path / "peer" / "logs-seen").write_bytes(b"rubbish")
    await peer.looker.look()
    assert "logs-seen is damaged" in peer.proofs.told().silent


@pytest.mark.parametrize("where", ["read_watched", "balances"])
async def test_a_mistake_of_ours_ends_one_look_and_is_told(
    peer: Peer, lab: Running, monkeypatch: pytest.MonkeyPatch, where: str
):
    def fails(*_: object) -> None:
        raise ValueError("year 285427423 is out of range")

    await peer.earns(lab, 1)
    with monkeypatch.context() as broken:
        broken.setattr(f"peer_daemon.earnings.log_looker.{where}", fails)
        await peer.looker.look()
    assert "year 285427423 is out of range" in peer.proofs.told().silent
    lab.clock.time += 60
    await peer.looker.look()
    assert [one.proved for one in peer.proofs.told().logs] == [1]


async def test_a_tracker_whose_answer_nobody_thought_of_does_not_keep_the_next_from_being_asked(
    tmp_path: Path, lab: Running, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "other").mkdir()
    poison = await start_tracker(tmp_path / "other", lab.clock)
    peer = make_peer(tmp_path / "peer", lab.clock, poison, lab)

    async def fails_there(line: HttpCaller, keys: list[str]) -> Balances:
        if line.address == poison.address:
            raise ValueError("year 285427423 is out of range")
        return await balances(line, keys)

    monkeypatch.setattr("peer_daemon.earnings.log_looker.balances", fails_there)
    try:
        await peer.earns(lab, 1)
        for _ in range(3):
            await peer.looker.look()
            told = peer.proofs.told()
            assert ([one.tracker for one in told.logs], told.silent) == ([lab.address.host_port], "")
    finally:
        peer.book.close()
        await peer.lines.close()
        await poison.stop()
