"""Whatever happens in whatever order: in the end all trackers are equal, and none ever serves what it should not."""

from __future__ import annotations

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from axonp2p.errors import PeerMisbehaved, Refused
from axonp2p.table.records import Row, open_row
from axonp2p.table.slots import name_of
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import Signed, open_signed, sign
from tests.fakes import NOW, make_row
from tests.unit.tracker.replicas import PaperTracker, key_number

NAMES = ["one", "two", "three"]
PEERS = range(4)

trackers = st.sampled_from(NAMES)
peers = st.sampled_from(PEERS)


class Tables(RuleBasedStateMachine):
    """Three trackers, four peers, and somebody who forges and repeats."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.trackers = {name: PaperTracker(name) for name in NAMES}
        self.down: set[str] = set()
        self.cut: set[str] = set()
        """Trackers that the others do not reach."""
        self.peer_skew = dict.fromkeys(PEERS, 0.0)
        self.last: dict[int, Row] = {}
        self.signed: list[Signed[Row]] = []
        """Everything that peers have ever signed."""

    @initialize(skews=st.lists(st.floats(-14, 14), min_size=3, max_size=3))
    def clocks_differ(self, skews: list[float]) -> None:
        for tracker, skew in zip(self.trackers.values(), skews, strict=True):
            tracker.skew = skew

    # --- peers

    @rule(peer=peers, told=st.sets(trackers, max_size=2), life=st.sampled_from([120, 600, 2400]))
    def announce(self, peer: int, told: set[str], life: int) -> None:
        self._tell(self._sign(peer, life, withdrawn=False), told)

    @rule(peer=peers, told=st.sets(trackers, max_size=2))
    def withdraw(self, peer: int, told: set[str]) -> None:
        if peer in self.last:
            self._tell(self._sign(peer, 0, withdrawn=True), told)

    @rule(peer=peers, told=st.sets(trackers, min_size=1, max_size=3))
    def sign_two_rows_with_one_number(self, peer: int, told: set[str]) -> None:
        if peer in self.last:
            twin = msgspec.structs.replace(self.last[peer], name="twin")
            self._tell(sign(key_number(peer), twin), told)

    @rule(peer=peers, skew=st.floats(-500, 500))
    def a_peers_clock_is_set(self, peer: int, skew: float) -> None:
        self.peer_skew[peer] = skew

    def _sign(self, peer: int, life: int, *, withdrawn: bool) -> Signed[Row]:
        clock = self.now + self.peer_skew[peer]
        last = self.last.get(peer)
        key = key_number(peer)
        row = make_row(
            key,
            sequence=int(clock * 1000) if last is None else max(last.sequence + 1, int(clock * 1000)),
            # No row ends before an older one does: else that one would live again where this was not heard of.
            expires=max(int(clock) + life, 0 if last is None else last.expires),
        )
        self.last[peer] = row = msgspec.structs.replace(row, capability=None) if withdrawn else row
        return sign(key, row)

    def _tell(self, signed: Signed[Row], told: set[str]) -> None:
        self.signed.append(signed)
        for name in told - self.down:
            tracker = self.trackers[name]
            rank = _rank(signed)
            news = all(_rank(each) < rank for each in tracker.accepted if each.signer == signed.signer)
            valid = _is_valid(signed, self.now + tracker.skew)
            assert tracker.take(signed, self.now, announced=True) == (news and valid)

    # --- somebody bad

    @rule(data=st.data(), told=trackers)
    def repeat_an_old_row(self, data: st.DataObject, told: str) -> None:
        if self.signed and told not in self.down:
            signed = data.draw(st.sampled_from(self.signed))
            tracker = self.trackers[told]
            stale = any(_rank(each) >= _rank(signed) for each in tracker.accepted if each.signer == signed.signer)
            assert not (tracker.take(signed, self.now, announced=True) and stale)

    @rule(data=st.data(), told=trackers, how=st.sampled_from(["number", "signer", "bit"]))
    def forge(self, data: st.DataObject, told: str, how: str) -> None:
        if not self.signed or told in self.down:
            return
        true = data.draw(st.sampled_from(self.signed))
        row = decode_as(true.payload, Row, Row.LIMIT)
        newer = encode(msgspec.structs.replace(row, sequence=row.sequence + 1, expires=int(self.now) + 3000))
        liar = key_number(99)
        forged: Signed[Row] = {
            "number": msgspec.structs.replace(true, payload=newer),
            "signer": Signed(signer=liar.peer_id, payload=newer, signature=liar.sign(Row.PURPOSE, newer)),
            "bit": msgspec.structs.replace(true, signature=bytes([true.signature[0] ^ 1]) + true.signature[1:]),
        }[how]
        known = self.trackers[told].replica.index.signed_of(true.signer)
        assert not self.trackers[told].take(forged, self.now, announced=False)
        assert self.trackers[told].replica.index.signed_of(true.signer) == known

    # --- trackers

    @rule(name=trackers)
    def push(self, name: str) -> None:
        if name in self.down:
            return
        self.trackers[name].push([self.trackers[other] for other in NAMES if self._reach(name, other)], self.now)

    @rule(name=trackers, other=trackers)
    def pull(self, name: str, other: str) -> None:
        if self._reach(name, other):
            self.trackers[name].pull(self.trackers[other], self.now)

    @rule(name=trackers)
    def crash(self, name: str) -> None:
        self.down.add(name)

    @rule(name=trackers, empty=st.booleans())
    def restart(self, name: str, empty: bool) -> None:
        if name in self.down:
            if empty:
                self.trackers[name].lose_disk()
            self.trackers[name].start(self.now)
            self.down.remove(name)

    @rule(cut=st.sets(trackers, max_size=1))
    def partition(self, cut: set[str]) -> None:
        self.cut = cut

    @rule(seconds=st.sampled_from([0.5, 3.0, 11.0, 100.0, 650.0, 4000.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        for name in set(NAMES) - self.down:
            self.trackers[name].sweep(self.now)

    def _reach(self, name: str, other: str) -> bool:
        return name != other and not {name, other} & self.down and not {name, other} & self.cut

    # --- what must hold

    @invariant()
    def nobody_serves_a_forged_or_expired_row(self) -> None:
        for name in set(NAMES) - self.down:
            tracker = self.trackers[name]
            for peer, signed in tracker.serves(self.now).items():
                row = open_row(signed, self.now + tracker.skew)
                assert row.peer == peer
                assert signed in self.signed
                assert row.expires > self.now + tracker.skew

    def teardown(self) -> None:
        self.cut = set()
        for name in list(self.down):
            self.trackers[name].start(self.now)
        self.now += 30  # clocks that differ disagree about rows that expire just now
        everyone = self.trackers.values()
        newest: dict[str, Signed[Row]] = {}
        for tracker in everyone:
            tracker.skew = 0.0
            tracker.sweep(self.now)
            for signed in tracker.accepted:
                known = newest.get(signed.signer)
                if known is None or _rank(signed) > _rank(known):
                    newest[signed.signer] = signed
        for tracker in everyone:
            for other in everyone:
                if other is not tracker:
                    tracker.pull(other, self.now, everything=True)
        wanted = {peer: signed for peer, signed in newest.items() if _offers(signed, self.now)}
        for tracker in everyone:
            assert tracker.serves(self.now) == wanted
            for other in everyone:
                if other is not tracker:
                    assert tracker.pull(other, self.now, everything=True)[1] == 0, "rows come again and again"


def _rank(signed: Signed[Row]) -> tuple[int, int]:
    """Higher for the row that wins: by number, then by the lower hash."""
    return decode_as(signed.payload, Row, Row.LIMIT).sequence, -name_of(signed.payload)


def _is_valid(signed: Signed[Row], now: float) -> bool:
    try:
        open_row(signed, now)
    except (PeerMisbehaved, Refused):
        return False
    return True


def _offers(signed: Signed[Row], now: float) -> bool:
    row = open_signed(signed, Row)
    return row.capability is not None and row.expires > now


Tables.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestTables = Tables.TestCase
