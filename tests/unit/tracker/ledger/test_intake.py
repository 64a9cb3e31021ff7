"""What a tracker takes into its log, and what of it counts: the ways in which credit came from nothing."""

from __future__ import annotations

import asyncio
import random
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axonp2p.errors import Refused, SettingsError, TooOften
from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger.balances import BalanceSums
from axonp2p.ledger.ledger_client import balances, hand_in, hand_in_voiding
from axonp2p.ledger.receipt import Balance, BalancesAsked
from axonp2p.reservation.reserving import new_uuid
from axonp2p.reservation.token import Token
from axonp2p.settings import TrackerSettings
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import Signed, open_signed
from tests.fakes import NOW, ManualClock, key_of, make_receipt, sign_both
from tests.laboratory.convictions import WITNESSES, evidence_against, voiding_of
from tests.unit.tracker.conftest import Running, Start
from tests.unit.tracker.ledger import test_foreign_receipts
from tests.unit.tracker.ledger.test_foreign_receipts import token_by
from tests.unit.tracker.logs import convicted, reserved, witnesses_reserved
from tracker.app import Tracker
from tracker.ledger import known_reservations
from tracker.ledger.intake import RECEIPTS_A_SECOND, RECEIPTS_AT_ONCE, Budget, TrackerTrust, most_flops
from tracker.ledger.owing import vouched_clients

CLIENT, ADA, BEN, FAR, NOBODY = (key_of(name) for name in ("client", "ada", "ben", "far", "throw-away"))
ALL_THAT_FITS = 2**63 - 1


async def began(home: Path, **settings: object) -> Running:
    tracker = Tracker(home, TrackerSettings(listen="127.0.0.1:0", **settings), clock := ManualClock(), random.Random(1))  # type: ignore[arg-type]
    address = await tracker.start()
    return Running(tracker, address, HttpCaller(address, called="tracker lab"), clock)


async def of(lab: Running, key: PrivateKey) -> Balance:
    (one,) = (await balances(lab.caller, [key.peer_id])).balances
    return one


async def test_two_keys_and_a_token_of_their_own_earn_nothing(tmp_path: Path):
    lab = await began(tmp_path, owing="earned", vouched_clients=[CLIENT.peer_id])
    try:
        # A row costs nothing either; so its receipts are kept, and shown, and stand for nothing.
        await lab.announce(ADA, BEN)
        own = encode(token_by(ADA, ADA, uuid=(uuid := new_uuid()), client=NOBODY.peer_id))
        mint = [sign_both(NOBODY, ADA, make_receipt(NOBODY, ADA, uuid, n, flops=ALL_THAT_FITS)) for n in (1, 2)]
        assert (await hand_in(lab.caller, mint, [own])).new == 2
        assert ((await of(lab, ADA)).earned_flops, (await of(lab, ADA)).stands) == (2 * ALL_THAT_FITS, "0")
        with pytest.raises(Refused, match=r"0\.00 earned"):
            await lab.reserve(ADA, BEN)
        # Not on a reservation of this tracker's either, from a client that has nothing: it gets none.
        with pytest.raises(Refused, match=r"0\.00 earned"):
            await lab.reserve(NOBODY, ADA)
        # Who works for a client that the operator vouches for has earned it, and may spend it.
        uuid = open_signed(await lab.reserve(CLIENT, ADA), Token).uuid
        work = sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, uuid, flops=4 * 10**13))
        assert (await hand_in(lab.caller, [work])).new == 1
        assert (await of(lab, ADA)).stands == str(4 * 10**13)
        await lab.reserve(ADA, BEN, seconds=60)
        # No more than its machine can have done in the reservation's time.
        more = sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, uuid, 2, flops=ALL_THAT_FITS))
        assert (await hand_in(lab.caller, [more])).new == 1
        assert (await of(lab, ADA)).stands == str(4 * 10**13)
    finally:
        await lab.stop()


async def test_what_stands_is_the_same_after_a_restart_and_the_largest_come_first(tmp_path: Path):
    lab = await began(tmp_path, vouched_clients=[CLIENT.peer_id])
    uuid = await reserved(lab, ADA, BEN)
    await hand_in(lab.caller, [sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, uuid))])
    # More than a machine can have done does not stand, whoever gave it.
    await hand_in(lab.caller, [sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, uuid, 2, flops=10**18))])
    assert (await of(lab, ADA)).stands == str(10**12)
    minted = encode(token_by(BEN, BEN, uuid=(other := new_uuid()), client=NOBODY.peer_id))
    await hand_in(lab.caller, [sign_both(NOBODY, BEN, make_receipt(NOBODY, BEN, other, flops=10**18))], [minted])
    before = await balances(lab.caller)
    assert [one.key for one in before.balances[:2]] == [ADA.peer_id, BEN.peer_id]
    await lab.stop()
    again = await began(tmp_path, vouched_clients=[CLIENT.peer_id])
    assert await balances(again.caller) == before
    await again.stop()


async def test_what_counts_no_more_stands_no_more(tmp_path: Path):
    lab = await began(tmp_path, vouched_clients=[CLIENT.peer_id])
    try:
        uuid = await reserved(lab, ADA)
        # Of two with one number one counts: the other's FLOPs go, whichever came first.
        forks = [sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, uuid, flops=flops)) for flops in (10**12, 2 * 10**12)]
        forks.sort(key=lambda one: sha256(one.receipt.payload).digest(), reverse=True)
        for fork in forks:
            await hand_in(lab.caller, [fork])
            assert (await of(lab, ADA)).stands == str((await of(lab, ADA)).earned_flops) != "0"
        await convicted(lab, of=ADA, reservation=uuid)
        assert ((await of(lab, ADA)).earned_flops, (await of(lab, ADA)).stands) == (0, "0")
    finally:
        await lab.stop()


def test_nobody_gives_itself_credit_on_its_own_reservation_be_it_a_trusted_tracker():
    trust = TrackerTrust(own=FAR.peer_id, trusted=lambda tracker: True)
    ada, ben, client = (key.peer_id for key in (ADA, BEN, CLIENT))
    assert trust.stands(BEN.peer_id, client, ada)
    assert not trust.stands(ada, client, ada)
    assert not trust.stands(client, client, ada)
    assert not TrackerTrust(own=FAR.peer_id).stands(ben, client, ada)


async def test_another_trackers_reservations_stand_when_it_is_trusted(tmp_path: Path):
    lab = await began(tmp_path, vouched_clients=[CLIENT.peer_id])
    try:
        await lab.announce(ADA)
        for trusted in (False, True):
            lab.trusts(*([FAR] if trusted else []))
            token = encode(token_by(FAR, ADA, uuid=(uuid := new_uuid())))
            assert (await hand_in(lab.caller, [test_foreign_receipts.doubly(ADA, uuid)], [token])).new == 1
            assert (await of(lab, ADA)).stands == str(10**12 * trusted)
    finally:
        await lab.stop()


async def test_receipts_of_nobody_that_is_known_do_not_enter_the_log(lab: Running):
    token = encode(token_by(FAR, ADA, uuid=(uuid := new_uuid())))
    kept = await hand_in(lab.caller, [test_foreign_receipts.doubly(ADA, uuid)], [token])
    assert "is no tracker that this one knows" in kept.refused[0]
    await lab.announce(ADA)
    assert (await hand_in(lab.caller, [test_foreign_receipts.doubly(ADA, uuid)], [token])).new == 1


async def test_a_stored_token_of_a_stranger_speaks_for_no_machine_that_is_not_known(lab: Running):
    await lab.announce(ADA)
    token = encode(token_by(FAR, ADA, BEN, uuid=(uuid := new_uuid())))
    assert (await hand_in(lab.caller, [test_foreign_receipts.doubly(ADA, uuid)], [token])).new == 1
    kept = await hand_in(lab.caller, [test_foreign_receipts.doubly(BEN, uuid)])
    assert "has no row here" in kept.refused[0]


def test_all_households_together_add_so_many_of_strangers_in_a_day(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracker.ledger.intake.STRANGERS_A_DAY", 5)
    budget = Budget(ManualClock())
    budget.charge_new("one household", 0, 3)
    with pytest.raises(TooOften):
        budget.charge_new("another one", 0, 3)
    budget.charge_new("another one", 3, 2)


async def test_all_keys_are_put_in_order_for_one_at_a_time_and_not_on_the_event_loop(
    lab: Running, monkeypatch: pytest.MonkeyPatch
):
    entered, go = list[threading.Thread](), threading.Event()
    largest = BalanceSums.largest

    def ordering(*arguments: Any) -> list[Balance]:
        entered.append(threading.current_thread())
        assert threading.current_thread() is threading.main_thread() or go.wait(10)
        return largest(*arguments)

    monkeypatch.setattr(BalanceSums, "largest", ordering)
    asking = [asyncio.create_task(lab.tracker.ledger.balances(BalancesAsked())) for _ in range(3)]
    for _ in range(3):
        await asyncio.sleep(0)
        await asyncio.to_thread(lambda: None)  # whatever waited for a thread before has begun
    assert len(entered) == 1
    go.set()
    await asyncio.gather(*asking)
    assert len(entered) == 3
    assert threading.main_thread() not in entered


async def test_what_strangers_may_add_in_a_day_is_bounded(lab: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracker.ledger.intake.STRANGERS_A_DAY_OF_ONE", 5)
    lab.tracker.ledger.budget = Budget(lab.clock)
    await lab.announce(ADA)
    token = encode(token_by(FAR, ADA, uuid=(uuid := new_uuid())))
    receipts = [test_foreign_receipts.doubly(ADA, uuid, number) for number in range(1, 9)]
    assert (await hand_in(lab.caller, receipts[:5], [token])).new == 5
    with pytest.raises(TooOften, match="does not trust"):
        await hand_in(lab.caller, receipts[5:], [token])
    assert (await hand_in(lab.caller, receipts[:5], [token])).known == 5
    trusted = await reserved(lab, ADA)
    assert (await hand_in(lab.caller, [test_foreign_receipts.doubly(ADA, trusted)])).new == 1
    lab.clock.time += 86400 / 5 + 1
    await hand_in(lab.caller, receipts[5:6], [token])


@pytest.mark.slow
async def test_who_is_refused_as_too_often_loses_nothing_by_having_asked(lab: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracker.ledger.intake.STRANGERS_A_DAY_OF_ONE", 5)
    lab.tracker.ledger.budget = Budget(lab.clock)
    await lab.announce(ADA)
    token = encode(token_by(FAR, ADA, uuid=(uuid := new_uuid())))
    receipts = [test_foreign_receipts.doubly(ADA, uuid, number) for number in range(1, 10)]
    await hand_in(lab.caller, receipts[:5], [token])
    for _ in range(5):  # one of the four has room each time, and none of them would ever be stored
        with pytest.raises(TooOften):
            await hand_in(lab.caller, receipts[5:], [token])
        lab.clock.time += 86400 / 5 - 1
    assert (await hand_in(lab.caller, receipts[5:], [token])).new == 4


async def test_what_one_household_adds_on_reservations_of_this_tracker_is_bounded_too(
    lab: Running, monkeypatch: pytest.MonkeyPatch
):
    # Keys, rows and reservations cost nothing: 22 million receipts fit one token of 64 peers for a day.
    monkeypatch.setattr("tracker.ledger.intake.NEW_AT_ONCE_OF_ONE", 5.0)
    lab.tracker.ledger.budget = Budget(lab.clock)
    uuid = await reserved(lab, ADA)
    receipts = [test_foreign_receipts.doubly(ADA, uuid, number) for number in range(1, 8)]
    assert (await hand_in(lab.caller, receipts[:5])).new == 5
    with pytest.raises(TooOften):
        await hand_in(lab.caller, receipts)
    lab.clock.time += 1
    assert (await hand_in(lab.caller, receipts)).new == 2
    # What a trusted tracker passes on is exempt: it has taken it by the same rule.
    lab.tracker.ledger.exempt = lambda source: source == "127.0.0.1"
    more = [test_foreign_receipts.doubly(ADA, uuid, number) for number in range(8, 28)]
    assert (await hand_in(lab.caller, more)).new == 20


async def test_made_up_receipts_are_refused_before_a_signature_is_looked_at(lab: Running):
    uuid = new_uuid()
    token = token_by(FAR, ADA, uuid=uuid)
    forged = msgspec.structs.replace(test_foreign_receipts.doubly(ADA, uuid), peer_signature=bytes(64))
    lie = msgspec.structs.replace(token, signature=bytes(64))
    assert "is no tracker that this one knows" in (await hand_in(lab.caller, [forged], [encode(lie)])).refused[0]
    assert "no token of it came along" in (await hand_in(lab.caller, [forged])).refused[0]
    await lab.announce(ADA)
    assert "signature" in (await hand_in(lab.caller, [forged], [encode(token)])).refused[0]


async def test_signatures_that_are_checked_for_one_household_are_bounded(lab: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracker.ledger.intake.CHECKED_AT_ONCE_OF_ONE", 9.0)
    lab.tracker.ledger.budget = Budget(lab.clock)
    await lab.announce(ADA)
    receipts = [test_foreign_receipts.doubly(ADA, new_uuid(), number) for number in range(1, 5)]
    for _ in range(2):
        assert len((await hand_in(lab.caller, receipts)).refused) == 4
    with pytest.raises(TooOften):
        await hand_in(lab.caller, receipts)
    lab.clock.time += 1
    assert len((await hand_in(lab.caller, receipts)).refused) == 4


async def test_convictions_of_one_household_are_bounded(lab: Running, monkeypatch: pytest.MonkeyPatch):
    # One reservation of keys of one's own bears any number of them, with 208 KiB of evidence each, for good.
    monkeypatch.setattr("tracker.ledger.intake.CONVICTIONS_A_DAY_OF_ONE", 2)
    lab.tracker.ledger.budget = Budget(lab.clock)
    uuid, witnesses = await reserved(lab, ADA), encode(await witnesses_reserved(lab))
    by = open_signed(decode_as(witnesses, Signed[Token], 16_384), Token).uuid
    jobs = [
        voiding_of(CLIENT, evidence_against(ADA, CLIENT, f"job-{number}", uuid, by=by), [witnesses])
        for number in range(3)
    ]
    for one in jobs[:2]:
        assert (await hand_in_voiding(lab.caller, one)).new
    with pytest.raises(TooOften, match="too many convictions"):
        await hand_in_voiding(lab.caller, jobs[2])
    assert not (await hand_in_voiding(lab.caller, jobs[0])).new
    lab.clock.time += 86400 / 2
    assert (await hand_in_voiding(lab.caller, jobs[2])).new


async def test_a_reservation_has_no_more_receipts_than_its_time_has_rounds(lab: Running):
    uuid = await reserved(lab, ADA)
    most = RECEIPTS_AT_ONCE + 600 * RECEIPTS_A_SECOND
    receipts = [test_foreign_receipts.doubly(ADA, uuid, number) for number in (most, most + 1)]
    kept = await hand_in(lab.caller, receipts)
    assert (kept.new, list(kept.refused)) == (1, [1])


async def test_thousands_of_tokens_under_somebodys_uuid_are_not_looked_at(lab: Running):
    uuid = await reserved(lab, ADA)
    await lab.announce(BEN, sequence=9)
    for number in range(30):
        squatter, issuer = key_of(f"squatter {number}"), key_of(f"issuer {number}")
        token = encode(token_by(issuer, BEN, uuid=uuid, client=squatter.peer_id))
        bait = sign_both(squatter, BEN, make_receipt(squatter, BEN, uuid, number + 1))
        assert (await hand_in(lab.caller, [bait], [token])).new == 1
    assert (await hand_in(lab.caller, [test_foreign_receipts.doubly(ADA, uuid)])).new == 1


async def test_the_true_token_is_found_among_many_that_squat_on_its_uuid(lab: Running):
    await lab.announce(ADA, BEN)
    # Tokens lie in the order of their issuers' ids.
    *issuers, last = sorted((key_of(f"issuer {number}") for number in range(31)), key=lambda key: key.peer_id)
    uuid = new_uuid()
    for number, issuer in enumerate(issuers, start=1):
        squatter = key_of(f"squatter {number}")
        token = encode(token_by(issuer, BEN, uuid=uuid, client=squatter.peer_id))
        bait = sign_both(squatter, BEN, make_receipt(squatter, BEN, uuid, number))
        assert (await hand_in(lab.caller, [bait], [token])).new == 1
    true = encode(token_by(last, ADA, uuid=uuid))
    assert (await hand_in(lab.caller, [test_foreign_receipts.doubly(ADA, uuid)], [true])).new == 1
    assert (await hand_in(lab.caller, [test_foreign_receipts.doubly(ADA, uuid, 2)])).new == 1


async def test_of_many_tokens_of_one_name_and_client_some_are_looked_at(lab: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracker.ledger.known_reservations.MOST_OF_ONE_NAME", 3)
    peers, uuid = [key_of(f"peer {number}") for number in range(6)], new_uuid()
    await lab.announce(*peers)
    for peer in peers:
        token = encode(token_by(key_of(f"issuer {peer.peer_id[:8]}"), peer, uuid=uuid))
        assert (await hand_in(lab.caller, [test_foreign_receipts.doubly(peer, uuid)], [token])).new == 1
    decoded = 0

    def counted(*about: Any) -> Any:
        nonlocal decoded
        decoded += 1
        return decode_as(*about)

    monkeypatch.setattr(known_reservations, "decode_as", counted)
    await hand_in(lab.caller, [test_foreign_receipts.doubly(peers[0], uuid, 2)])
    assert decoded == 3


async def test_a_client_alone_makes_nothing_void(start: Start, tmp_path: Path):
    lab = await start()
    uuid = await reserved(lab, ADA)
    assert (await hand_in(lab.caller, [test_foreign_receipts.doubly(ADA, uuid)])).new == 1
    invented = [key_of(name) for name in WITNESSES]
    for issuer in (FAR, invented[0]):
        token = encode(token_by(issuer, *invented, uuid=(by := new_uuid())))
        kept = await hand_in_voiding(
            lab.caller, voiding_of(CLIENT, evidence_against(ADA, CLIENT, "job-1", uuid, by=by), [token])
        )
        assert not kept.new
        assert kept.reason
    assert (await of(lab, ADA)).earned_flops == 10**12


def test_what_a_machine_may_have_done():
    token = open_signed(token_by(FAR, ADA), Token)
    assert most_flops(token, 40.0, 2) == 4 * 40 * 10**9 * 2 * 600
    assert most_flops(token, 1e9, 1024) == 2**62
    assert token.not_before == int(NOW)


def test_a_vouched_client_that_is_no_id():
    with pytest.raises(SettingsError, match="vouched-clients"):
        vouched_clients(["otter"])
