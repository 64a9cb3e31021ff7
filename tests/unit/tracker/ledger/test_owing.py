"""What a client may owe."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import Refused, SettingsError, TooOften
from axonp2p.ledger.receipt import Balance
from axonp2p.reservation.reserving import new_uuid
from axonp2p.reservation.token import Token
from axonp2p.settings import TrackerSettings
from tests.fakes import ManualClock, key_of, make_offer
from tests.unit.tracker.conftest import Running, start_tracker
from tests.unit.tracker.logs import ADA, BEN, CLIENT, paid, reserved
from tracker.ledger.intake import UNMEASURED_GFLOPS
from tracker.ledger.owing import RECEIPTS_COME_WITHIN_S, Owing, PeerPromise, may_cost, promises_of

DAY_S, CREDIT = 86400, 432 * 10**9  # FLOPs of a credit
KEY = key_of("client").peer_id
NOW, LATE = 1000 * DAY_S, RECEIPTS_COME_WITHIN_S


def balance(earned: float = 0, owed: float = 0) -> Balance:
    return Balance(key=KEY, earned=str(round(earned * CREDIT)), owed=str(round(owed * CREDIT)))


def promise(peer: str, began: float = 0, lasts: float = DAY_S, *, slots: int = 1) -> PeerPromise:
    """One peer whose slots earn a credit a second; times from `NOW` on."""
    return PeerPromise(key_of(peer).peer_id, CREDIT / 1e9, slots, NOW + began, NOW + began + lasts)


@pytest.mark.parametrize(
    ("promises", "credits"),
    [
        ([], 0),
        ([promise("ada", lasts=100)], 100),
        ([promise("ada", lasts=100), promise("ben", lasts=50)], 150),
        # What was done long ago is in the ledger; of late, perhaps not yet.
        ([promise("ada", began=-5000, lasts=6000)], 1000 + LATE),
        ([promise("ada", began=-100, lasts=400)], 400),
        ([promise("ada", began=-1000, lasts=900)], LATE - 100),
        ([promise("ada", began=-1000, lasts=1000 - LATE)], 0),
        # A peer has no more hands than it has slots, however often it is promised.
        ([promise("ada", lasts=100)] * 3, 100),
        ([promise("ada", lasts=100, slots=2)] * 3, 200),
        ([promise("ada", lasts=100), promise("ada", began=50, lasts=100)], 150),
        ([promise("ada", lasts=100), promise("ada", began=200, lasts=100)], 200),
    ],
)
def test_what_promises_may_still_cost(promises: list[PeerPromise], credits: float):
    assert may_cost(promises, NOW) == pytest.approx(credits)


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(-2000, 2000), st.integers(0, 2000), st.integers(1, 3)), max_size=6
    )
)
def test_one_more_promise_never_makes_it_less_and_never_costs_more_than_by_itself(wishes):
    promises = [promise(peer, began, lasts, slots=slots) for peer, began, lasts, slots in wishes]
    for count in range(len(promises)):
        before, after = may_cost(promises[:count], NOW), may_cost(promises[: count + 1], NOW)
        assert before - 1e-6 <= after
        if len({one.slots for one in promises}) == 1:  # a peer that took more slots can do more in all its promises
            assert after - before <= may_cost([promises[count]], NOW) + 1e-6


def test_an_open_tracker_lets_anybody_owe_anything():
    Owing().check(balance(owed=1e9), [], [promise("ada")], NOW)


def test_a_limit_counts_what_the_reservation_may_cost_and_what_is_promised():
    rule, asked, promised = Owing("limited", 250), [promise("ada", lasts=100)], [promise("ben", lasts=30)]
    rule.check(balance(owed=150), [], asked, NOW)
    rule.check(balance(owed=120), promised, asked, NOW)
    rule.check(balance(owed=200, earned=80), promised, asked, NOW)
    with pytest.raises(Refused) as refused:
        rule.check(balance(owed=200, earned=70), promised, asked, NOW)
    for number in (
        "up to 100.00 credits",
        "up to 30.00 promised",
        "200.00 owed",
        "70.00 earned",
        "owe 260.00",
        "250.00 credits more",
    ):
        assert number in refused.value.message


def test_only_what_was_earned():
    rule, asked = Owing("earned"), [promise("ada", lasts=100), promise("ben", lasts=100)]
    rule.check(balance(earned=300, owed=100), [], asked, NOW)
    with pytest.raises(Refused, match="no more than what it earned"):
        rule.check(balance(earned=300, owed=101), [], asked, NOW)
    with pytest.raises(Refused):
        rule.check(balance(earned=300, owed=100), [promise("cat", lasts=1)], asked, NOW)


def test_a_token_promises_what_its_peers_offer():
    token = Token(
        uuid=new_uuid(),
        issuer=key_of("tracker").peer_id,
        client=KEY,
        client_address="127.0.0.1",
        peers=[ADA.peer_id, BEN.peer_id],
        kinds=["train"],
        not_before=1000,
        expires=2000,
    )
    found = promises_of(token, {ADA.peer_id: make_offer(gflops=3.0, slots=2)}.get)
    assert found == [PeerPromise(ADA.peer_id, 3.0, 2, 1000, 2000)]
    # A machine that was not measured is not free of cost, as one without a row is not.
    (unmeasured,) = promises_of(token, {BEN.peer_id: make_offer(gflops=0.0, slots=1)}.get)
    assert unmeasured.gflops == UNMEASURED_GFLOPS


@pytest.mark.parametrize(("rule", "most"), [("generous", 0), ("limited", -1)])
def test_a_rule_that_is_none(rule: str, most: float):
    with pytest.raises(SettingsError):
        Owing(rule, most)


async def limited(home: Path, monkeypatch: pytest.MonkeyPatch, clock: ManualClock, most: float) -> Running:
    limits = {"owing": "limited", "owing_credits": most}
    monkeypatch.setattr(
        "tests.unit.tracker.conftest.TrackerSettings", lambda **usual: TrackerSettings(**usual, **limits)
    )
    return await start_tracker(home, clock)


async def test_a_tracker_refuses_with_the_numbers_and_gives_again_what_it_gave(tmp_path: Path, monkeypatch):
    # A slot of 40 GFLOPS for 600 s may cost 55.56 credits; each peer has two; a receipt of 10**12 FLOPs costs 2.31.
    lab = await limited(tmp_path, monkeypatch, ManualClock(), 115.0)
    try:
        uuid = await reserved(lab, ADA, BEN)
        await lab.reserve(CLIENT, ADA, BEN, uuid=uuid)
        with pytest.raises(
            Refused, match=r"may cost up to 55\.56 credits; with up to 111\.11 promised already, 0\.00 "
        ):
            await lab.reserve(CLIENT, ADA)
        await lab.reserve(key_of("somebody else"), ADA, BEN)
        lab.clock.time += 600  # over, but for what may be on its way
        await lab.announce(ADA, sequence=int(lab.clock.now()))
        with pytest.raises(Refused, match=r"111\.11 promised already"):
            await lab.reserve(CLIENT, ADA)
        lab.clock.time += 600
        await paid(lab, ADA, rounds=2)
        with pytest.raises(Refused, match=r"up to 55\.56 promised already, 4\.63 owed and 0\.00 earned"):
            await lab.reserve(CLIENT, ADA)
    finally:
        await lab.stop()


async def test_who_holds_too_many_reservations_is_refused_before_their_cost_is_added_up(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tracker.table.admission.MOST_UNUSED_PEERS_OF_KEY", 2)
    lab = await limited(tmp_path, monkeypatch, ManualClock(), 1e6)
    try:
        await reserved(lab, ADA, BEN)
        monkeypatch.setattr("tracker.ledger.issuer._promised", None)
        with pytest.raises(TooOften, match="your key holds 2 peers"):
            await lab.reserve(CLIENT, ADA)
    finally:
        await lab.stop()


async def test_the_cost_of_a_bounded_number_of_promises_is_added_up(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tracker.ledger.owing.MOST_PROMISED", 2)
    lab = await limited(tmp_path, monkeypatch, ManualClock(), 1e6)
    try:
        await lab.announce(ADA, BEN)
        for peer in (ADA, BEN):
            await lab.reserve(CLIENT, peer, uuid=new_uuid())
        with pytest.raises(TooOften, match="2 peers are promised"):
            await lab.reserve(CLIENT, ADA, uuid=new_uuid())
        await lab.reserve(key_of("somebody else"), ADA, BEN, uuid=new_uuid())
    finally:
        await lab.stop()


async def test_promises_to_a_vouched_client_are_not_added_up(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tracker.ledger.issuer._promised", None)
    vouched = {"owing": "earned", "vouched_clients": [CLIENT.peer_id]}
    monkeypatch.setattr(
        "tests.unit.tracker.conftest.TrackerSettings", lambda **usual: TrackerSettings(**usual, **vouched)
    )
    lab = await start_tracker(tmp_path, ManualClock())
    try:
        await reserved(lab, ADA, BEN)
    finally:
        await lab.stop()


async def test_what_is_promised_outlives_the_tracker_that_promised(tmp_path: Path, monkeypatch):
    lab = await limited(tmp_path, monkeypatch, ManualClock(), 60.0)
    await reserved(lab, ADA)
    await lab.stop()
    again = await limited(tmp_path, monkeypatch, lab.clock, 60.0)
    try:
        await again.announce(BEN)
        with pytest.raises(Refused, match=r"up to 55\.56 promised already"):
            await again.reserve(CLIENT, BEN)
    finally:
        await again.stop()


async def test_of_many_wishes_at_once_no_more_are_granted_than_the_limit_bears(tmp_path: Path, monkeypatch):
    lab = await limited(tmp_path, monkeypatch, ManualClock(), 3 * 55.56)
    try:
        peers = [key_of(f"peer {number}") for number in range(8)]
        await lab.announce(*peers)
        answers = await asyncio.gather(
            *(lab.reserve(CLIENT, peer, uuid=new_uuid()) for peer in peers), return_exceptions=True
        )
        assert sum(isinstance(answer, Refused) for answer in answers) == 5
        assert sum(isinstance(answer, BaseException) for answer in answers) == 5
    finally:
        await lab.stop()


async def test_a_rule_by_which_nobody_can_reserve_is_said_at_the_start(tmp_path: Path, monkeypatch, caplog):
    assert Owing("earned").trouble.startswith("nobody can reserve here")
    assert not any(rule.trouble for rule in (Owing(), Owing("limited"), Owing("earned", vouched=frozenset({KEY}))))
    monkeypatch.setattr(
        "tests.unit.tracker.conftest.TrackerSettings", lambda **usual: TrackerSettings(**usual, owing="earned")
    )
    lab = await start_tracker(tmp_path)
    try:
        assert "nobody can reserve here" in lab.tracker._trouble()
        assert "nobody can reserve here" in caplog.text
        assert "vouched-clients" in caplog.text
    finally:
        await lab.stop()
