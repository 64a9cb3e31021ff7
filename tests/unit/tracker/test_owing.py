"""What a client may owe."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.errors import Refused, SettingsError
from axonp2p.ledger.receipt import Balance
from axonp2p.settings import TrackerSettings
from tests.fakes import ManualClock, key_of, make_offer
from tests.unit.tracker.conftest import start_tracker
from tests.unit.tracker.logs import ADA, BEN, CLIENT, paid, reserved
from tracker.owing import Owing

DAY_S, CREDIT = 86400, 432 * 10**9  # FLOPs of a credit
KEY = key_of("client").peer_id


def balance(earned: float = 0, owed: float = 0) -> Balance:
    return Balance(key=KEY, earned=str(round(earned * CREDIT)), owed=str(round(owed * CREDIT)))


def test_an_open_tracker_lets_anybody_owe_anything():
    Owing().check(balance(owed=1e9), [make_offer(gflops=1e6)], DAY_S)


def test_a_limit_counts_what_the_reservation_may_cost():
    rule, offers = Owing("limited", 250), [make_offer(gflops=0.5)]  # 100 credits in a day
    rule.check(balance(owed=150), offers, DAY_S)
    rule.check(balance(owed=200, earned=60), offers, DAY_S)
    with pytest.raises(Refused) as refused:
        rule.check(balance(owed=200, earned=40), offers, DAY_S)
    for number in ("up to 100.00 credits", "200.00 owed", "40.00 earned", "would owe 260.00", "250.00 credits more"):
        assert number in refused.value.message


def test_only_what_was_earned():
    rule = Owing("earned")
    rule.check(balance(earned=300, owed=100), [make_offer(gflops=0.5)] * 2, DAY_S)
    with pytest.raises(Refused, match="no more than what it earned"):
        rule.check(balance(earned=300, owed=101), [make_offer(gflops=0.5)] * 2, DAY_S)
    with pytest.raises(Refused):
        rule.check(balance(), [make_offer(gflops=0.5)], DAY_S)


@pytest.mark.parametrize(("rule", "most"), [("generous", 0), ("limited", -1)])
def test_a_rule_that_is_none(rule: str, most: float):
    with pytest.raises(SettingsError):
        Owing(rule, most)


async def test_a_tracker_refuses_with_the_numbers_and_gives_again_what_it_gave(tmp_path: Path, monkeypatch):
    # Two peers of 40 GFLOPS for 600 s may cost 111 credits; each receipt of 10**12 FLOPs costs 2.3.
    limits = {"owing": "limited", "owing_credits": 115.0}
    monkeypatch.setattr(
        "tests.unit.tracker.conftest.TrackerSettings", lambda **usual: TrackerSettings(**usual, **limits)
    )
    lab = await start_tracker(tmp_path, ManualClock())
    try:
        uuid = await reserved(lab, ADA, BEN)
        await paid(lab, ADA, rounds=2)
        with pytest.raises(Refused, match=r"may cost up to 111\.11 credits; with 4\.63 owed and 0\.00 earned"):
            await lab.reserve(CLIENT, ADA, BEN)
        await lab.reserve(CLIENT, ADA, BEN, uuid=uuid)
        await lab.reserve(CLIENT, ADA)
    finally:
        await lab.stop()
