"""Random histories at three trackers: no credit is lost, doubled or invented; in the end all have equal balances."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonp2p.ledger.credit_proof import counting
from axonp2p.ledger.receipt import DoublySigned, Receipt, open_doubly_signed
from axonp2p.ledger.voiding import VoidingHandedIn, open_voiding
from axonp2p.reservation.token import Token
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import sign
from tests.fakes import NOW, ManualClock, key_of, make_receipt, sign_both
from tests.laboratory.convictions import END, WITNESSES, evidence_against, voiding_of
from tests.laboratory.ledger_world import Ledger, cut, fold, join

CLIENTS = [key_of("client"), key_of("other client")]
PEERS = [key_of("ada"), key_of("ben")]
JOBS = ["job-0", "job-1"]
ISSUER = key_of("a tracker that is gone")
NAMES = ["first", "second", "third"]


def _uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def _token(reservation: int) -> bytes:
    token = Token(
        uuid=_uuid(reservation),
        issuer=ISSUER.peer_id,
        client=CLIENTS[reservation % 2].peer_id,
        client_address="127.0.0.1",
        peers=[peer.peer_id for peer in (*PEERS, *map(key_of, WITNESSES))],
        kinds=["train"],
        not_before=int(NOW),
        expires=int(NOW) + 600,
    )
    return encode(sign(ISSUER, token))


def _receipt(reservation: int, peer: int, number: int, fork: int) -> DoublySigned:
    """Of forks both sides signed each; they differ in FLOPs, and in the job that they name."""
    client, by = CLIENTS[reservation % 2], PEERS[peer]
    flops = 10**12 * (number + 1) + fork
    job = JOBS[(number + fork) % 2]
    return sign_both(client, by, make_receipt(client, by, _uuid(reservation), number + 1, flops=flops, job=job))


def _voiding(client: int, peer: int, job: int, round_: int) -> VoidingHandedIn:
    """Of what the peer did in one of two rounds: either makes the same receipts void."""
    end = [0.5 - 0.1 * round_] * 32
    evidence = evidence_against(PEERS[peer], CLIENTS[client], JOBS[job], _uuid(client), end=end)
    return voiding_of(CLIENTS[client], evidence, [_token(client)])


_CACHE = {
    (reservation, peer, number, fork): _receipt(reservation, peer, number, fork)
    for reservation in range(3)
    for peer in range(2)
    for number in range(4)
    for fork in range(2)
}
_TOKENS = [_token(reservation) for reservation in range(3)]
_VOIDINGS = {which: _voiding(*which) for which in itertools.product(range(2), repeat=4)}

receipts = st.sampled_from(sorted(_CACHE))
voidings = st.sampled_from(sorted(_VOIDINGS))
trackers = st.integers(0, 2)
steps = st.one_of(
    st.tuples(st.just("hand in"), trackers, st.lists(receipts, min_size=1, max_size=12)),
    st.tuples(st.just("hand in while the disk fails"), trackers, st.lists(receipts, min_size=1, max_size=12),
              st.integers(0, 400)),
    st.tuples(st.just("forge"), trackers, receipts, st.booleans()),
    st.tuples(st.just("void"), trackers, voidings),
    st.tuples(st.just("void while the disk fails"), trackers, voidings, st.integers(0, 400)),
    st.tuples(st.just("forge a voiding"), trackers, voidings, st.sampled_from(["by mallory", "it does not convict"])),
    st.tuples(st.just("cut"), trackers, trackers),
    st.tuples(st.just("join")),
    st.tuples(st.just("speak"), trackers),
    st.tuples(st.just("restart"), trackers),
    st.tuples(st.just("back up"), trackers),
    st.tuples(st.just("restore"), trackers),
)  # fmt: skip


@dataclass
class World:
    """The trackers, and what was acknowledged."""

    folder: Path
    clock: ManualClock = field(default_factory=ManualClock)
    said_kept: set[tuple[int, int, int, int]] = field(default_factory=set)
    said_void: set[tuple[int, int, int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.ledgers = [Ledger(self.folder / name, self.clock) for name in NAMES]
        for ledger in self.ledgers:
            ledger.open()
        join(*self.ledgers)

    async def take(self, step: tuple) -> None:  # type: ignore[type-arg]
        match step:
            case ("hand in", at, which):
                kept = await self.ledgers[at].hand_in(*self._parcel(which))
                assert kept is not None
                self._acknowledged(which)
            case ("hand in while the disk fails", at, which, after):
                ledger = self.ledgers[at]
                if await ledger.while_the_disk_fails(ledger.hand_in(*self._parcel(which)), after):
                    self._acknowledged(which)
            case ("void", at, which):
                kept = await self.ledgers[at].hand_in_voiding(_VOIDINGS[which])
                assert kept is not None
                assert not kept.reason
                self.said_void.add(which)
            case ("void while the disk fails", at, which, after):
                ledger = self.ledgers[at]
                if await ledger.while_the_disk_fails(ledger.hand_in_voiding(_VOIDINGS[which]), after):
                    self.said_void.add(which)
            case ("forge a voiding", at, which, how):
                await self._forge_voiding(self.ledgers[at], which, how)
            case ("forge", at, which, by_client):
                await self._forge(self.ledgers[at], which, by_client=by_client)
            case ("cut", one, other):
                if one != other:
                    cut(self.ledgers[one], self.ledgers[other])
            case ("join",):
                join(*self.ledgers)
            case ("speak", at):
                await self.ledgers[at].speak()
            case ("restart", at):
                await self.ledgers[at].close()
                self.ledgers[at].open()
            case ("back up", at):
                await self.ledgers[at].back_up(self.folder / f"backup-{at}")
            case ("restore", at):
                await self._restore(at)

    async def settle(self) -> None:
        """Everybody reaches everybody, and has had time to speak."""
        join(*self.ledgers)
        for _ in range(3):
            for ledger in self.ledgers:
                await ledger.speak()

    def owed(self) -> dict[str, object]:
        """What everybody's balance must be."""
        opened = [(open_doubly_signed(_CACHE[one]), _CACHE[one].receipt.payload) for one in self.said_kept]
        voided = {open_voiding(_VOIDINGS[one].voided).spoils for one in self.said_void}
        counted = counting(opened, voided)
        found: list[Receipt] = [receipt for receipt, payload in opened if payload in counted]
        return dict(fold(found))

    def _parcel(self, which: list[tuple[int, int, int, int]]) -> tuple[list[DoublySigned], list[bytes]]:
        return [_CACHE[one] for one in which], [_TOKENS[number] for number in {one[0] for one in which}]

    def _acknowledged(self, which: list[tuple[int, int, int, int]]) -> None:
        # Also a refused fork: the tracker had the other one, or will hear that it counts.
        self.said_kept |= set(which)

    async def _forge(self, ledger: Ledger, which: tuple[int, int, int, int], *, by_client: bool) -> None:
        good = _CACHE[which]
        stranger = key_of("mallory")
        if by_client:
            signed = sign(stranger, open_doubly_signed(good))
            forged = msgspec.structs.replace(good, receipt=signed)
        else:
            forged = msgspec.structs.replace(good, peer_signature=stranger.sign("axon/receipt-accepted/1", b"x"))
        kept = await ledger.hand_in([forged], [_TOKENS[which[0]]])
        assert kept is not None
        assert len(kept.refused) == 1

    async def _forge_voiding(self, ledger: Ledger, which: tuple[int, int, int, int], how: str) -> None:
        client, peer, job, _ = which
        if how == "by mallory":
            good = _VOIDINGS[which]
            forged = msgspec.structs.replace(good, voided=sign(key_of("mallory"), open_voiding(good.voided)))
        else:
            alone = evidence_against(PEERS[peer], CLIENTS[client], JOBS[job], _uuid(client), opinions=[END])
            forged = voiding_of(CLIENTS[client], alone, [_token(client)])
        kept = await ledger.hand_in_voiding(forged)
        assert kept is not None
        assert kept.reason

    async def _restore(self, at: int) -> None:
        backup = self.folder / f"backup-{at}"
        if backup.exists():
            # What it alone had heard of in its last second is lost with its disk: docs/ledger.md.
            await self.settle()
            await self.ledgers[at].go_back_to(backup)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, min_size=5, max_size=30))
def test_no_credit_is_lost_doubled_or_invented(history: list[tuple]):  # type: ignore[type-arg]
    async def live() -> None:
        with tempfile.TemporaryDirectory() as folder:
            world = World(Path(folder))
            try:
                for step in history:
                    await world.take(step)
                await world.settle()
                owed = world.owed()
                for ledger in world.ledgers:
                    balances = (await ledger.balances()).balances
                    assert {one.key: one for one in balances} == owed
                    assert await ledger.problems() == []
                    assert not ledger.watcher.watched.convicted
            finally:
                for ledger in world.ledgers:
                    await ledger.close()

    asyncio.run(live())


async def test_what_a_dead_tracker_told_only_one_reaches_all(tmp_path: Path):
    first, second, third = ledgers = [Ledger(tmp_path / name, ManualClock()) for name in NAMES]
    for ledger in ledgers:
        ledger.open()
    try:
        join(first, second)
        await first.hand_in([_CACHE[0, 0, 0, 0]], [_TOKENS[0]])
        await first.hand_in_voiding(_VOIDINGS[0, 1, 0, 0])
        await first.hand_in([_CACHE[0, 1, 0, 0]], [_TOKENS[0]])
        await first.speak()
        join(second, third)  # the first is never heard of again
        for _ in range(2):
            await third.speak()
        assert third.keeper.receipts == 1
        assert (await third.balances()).balances == (await first.balances()).balances
        assert await third.log_size() == 3
    finally:
        for ledger in ledgers:
            await ledger.close()
