"""Conversations with a tracker, over real TLS: heard this, said that."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import msgspec
import pytest

from axonp2p.errors import (
    AxonError,
    BadSignature,
    Busy,
    ClockWrong,
    MalformedMessage,
    MessageTooLarge,
    Refused,
    SettingsError,
    StaleRow,
    TooOften,
)
from axonp2p.ledger import log_client
from axonp2p.ledger.ledger_client import balances, hand_in
from axonp2p.ledger.receipt import (
    RECEIPTS_KEPT_LIMIT,
    Receipt,
    Receipts,
    ReceiptsKept,
    counts_instead,
    open_doubly_signed,
)
from axonp2p.peers.capability import Need, as_map
from axonp2p.reservation.reserving import new_uuid
from axonp2p.reservation.token import Token
from axonp2p.settings import TrackerSettings
from axonp2p.table.records import Announced, Row, Rows
from axonp2p.table.slots import name_of
from axonp2p.table.tracker_client import announce, query
from axonp2p.transport.flow.rate_limit import BURST
from axonp2p.wire.codec import PROTOCOL_VERSION, encode
from axonp2p.wire.envelope import Signed, open_signed, sign
from tests.fakes import NOW, ManualClock, key_of, make_offer, make_receipt, make_row, sign_both
from tests.laboratory.ledger_world import fold
from tests.unit.tracker.conftest import Running, Start
from tracker.api.announces import ping_in
from tracker.api.routes import BYTES_OF_A_REQUEST
from tracker.app import Tracker
from tracker.ledger.issuer import KEPT_AFTER_END_S
from tracker.table.admission import MOST_KNOWN_PEERS
from tracker.table.index_columns import pack_facts
from tracker.table.table_index import REMEMBERED_S

ADA, BEN, CLEO, CLIENT, OTHER = (key_of(name) for name in ("ada", "ben", "cleo", "client", "other"))
TRAIN = as_map(Need())


async def names(lab: Running, **need: Any) -> set[str]:
    found = await query(lab.caller, as_map(Need(**need)), 200, now=lab.clock.now())
    return {row.peer for row in found.rows}


# --- the table


async def test_an_announce_is_answered_with_when_and_from_where(lab: Running):
    answer = await announce(lab.caller, sign(ADA, make_row(ADA)))
    assert answer == Announced(
        tracker=lab.tracker.key.peer_id, again_in=300, seen_from="127.0.0.1", time=NOW, ping_in=4
    )


@pytest.mark.parametrize(
    ("peers", "again_in", "seconds"), [(12, 300, 4), (1000, 300, 50), (10_000, 300, None), (0, 5, None)]
)
def test_only_the_peers_of_a_small_swarm_look_whether_the_tracker_lives(
    peers: int, again_in: float, seconds: float | None
):
    assert ping_in(peers, again_in) == seconds


async def test_who_announced_is_found_by_need(lab: Running):
    await lab.announce(ADA, offer=make_offer(cores=8))
    await lab.announce(BEN, offer=make_offer(cores=2))
    assert await names(lab) == {ADA.peer_id, BEN.peer_id}
    assert await names(lab, cores=4) == {ADA.peer_id}
    found = await query(lab.caller, as_map(Need(cores=4)), 200, now=NOW)
    assert (found.fitting, found.alive, found.dropped) == (1, 2, 0)


async def test_a_replayed_announce_with_an_older_number_changes_nothing(lab: Running):
    old, new = make_row(ADA, sequence=4, name="old"), make_row(ADA, sequence=5, name="new")
    await announce(lab.caller, sign(ADA, old))
    await announce(lab.caller, sign(ADA, new))
    with pytest.raises(StaleRow, match=r"row 4 of .* is not newer than row 5"):
        await announce(lab.caller, sign(ADA, old))
    found = await query(lab.caller, TRAIN, 10, now=NOW)
    assert [row.name for row in found.rows] == ["new"]


async def test_of_two_rows_with_one_number_every_tracker_keeps_the_same(lab: Running):
    stays, goes = sorted((make_row(ADA, name=name) for name in ("one", "other")), key=lambda row: name_of(encode(row)))
    await announce(lab.caller, sign(ADA, goes))
    await announce(lab.caller, sign(ADA, stays))
    with pytest.raises(StaleRow):
        await announce(lab.caller, sign(ADA, goes))
    found = await query(lab.caller, TRAIN, 10, now=NOW)
    assert [row.name for row in found.rows] == [stays.name]


async def test_the_same_row_again_is_acknowledged(lab: Running):
    row = sign(ADA, make_row(ADA))
    first, again = await announce(lab.caller, row), await announce(lab.caller, row)
    assert msgspec.structs.replace(again, reached=None) == msgspec.structs.replace(first, reached=None)


async def test_a_row_signed_by_someone_else_is_refused(lab: Running):
    await lab.announce(ADA)
    with pytest.raises(BadSignature):
        await announce(lab.caller, sign(OTHER, make_row(ADA, sequence=9)))
    with pytest.raises(BadSignature):
        await announce(lab.caller, msgspec.structs.replace(sign(OTHER, make_row(ADA, sequence=9)), signer=ADA.peer_id))
    assert lab.tracker.table.index.sequence_of(ADA.peer_id) == 1


async def test_a_row_above_its_cap_is_refused(lab: Running):
    with pytest.raises(MessageTooLarge, match="Row of"):
        await announce(lab.caller, Signed(signer=ADA.peer_id, payload=b"x" * 1025, signature=b"s" * 64))
    with pytest.raises(MessageTooLarge, match="a body of"):
        await announce(lab.caller, Signed(signer=ADA.peer_id, payload=b"x" * 10_000, signature=b"s" * 64))
    assert len(lab.tracker.table.index) == 0


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"expires": int(NOW) - 60}, ClockWrong),
        ({"sequence": int((NOW + 200) * 1000)}, ClockWrong),
        ({"expires": int(NOW) + 86400}, MalformedMessage),
        ({"capability": {"cores": 4}}, MalformedMessage),
        ({"capability": {"cores": "4"}}, MalformedMessage),
        ({"capability": {**as_map(make_offer()), "unknown": 1}}, MalformedMessage),
    ],
)
async def test_a_row_that_makes_no_sense_is_refused(lab: Running, change: dict[str, Any], refusal: type[AxonError]):
    with pytest.raises(refusal):
        await announce(lab.caller, sign(ADA, make_row(ADA, **change)))
    assert len(lab.tracker.table.index) == 0


async def test_a_withdrawn_peer_is_gone_and_old_rows_do_not_bring_it_back(lab: Running):
    old = sign(ADA, make_row(ADA, sequence=1))
    await announce(lab.caller, old)
    await lab.announce(ADA, sequence=2, capability=None)
    assert await names(lab) == set()
    with pytest.raises(StaleRow):
        await announce(lab.caller, old)
    await lab.announce(ADA, sequence=3)
    assert await names(lab) == {ADA.peer_id}


async def test_rows_expire_and_are_swept_from_the_disk(lab: Running):
    await lab.announce(ADA)
    lab.clock.time += 601
    assert await names(lab) == set()
    lab.clock.time += REMEMBERED_S
    await lab.tracker.table.sweep(lab.clock.now())
    rows = lambda database: database.execute("SELECT count(*) FROM rows").fetchone()[0]  # noqa: E731
    assert await lab.tracker._database.read(rows) == 0


async def test_the_table_has_an_end_but_not_for_those_in_it(lab: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracker.table.admission.MOST_KNOWN_PEERS", 2)
    await lab.announce(ADA, BEN)
    with pytest.raises(Busy, match="full"):
        await lab.announce(CLEO)
    await lab.announce(ADA, sequence=2)
    assert MOST_KNOWN_PEERS > 10_000


async def test_at_most_as_many_rows_as_asked_for(lab: Running):
    keys = [key_of(f"peer {number}") for number in range(9)]
    await lab.announce(*keys)
    found = await query(lab.caller, TRAIN, 4, now=NOW)
    assert (len(found.rows), found.fitting) == (4, 9)


@pytest.mark.parametrize("need", [{"cores": 0}, {"unknown": 1}, {"packages": ["not a requirement!"]}])
async def test_a_need_that_makes_no_sense_is_refused(lab: Running, need: dict[str, Any]):
    with pytest.raises(MalformedMessage):
        await query(lab.caller, need, 10, now=NOW)


# --- reservations


async def test_a_token_says_who_whom_and_how_long(lab: Running):
    await lab.announce(ADA, BEN)
    uuid = new_uuid()
    token = open_signed(await lab.reserve(CLIENT, ADA, BEN, uuid=uuid), Token)
    assert token == Token(
        uuid=uuid,
        issuer=lab.tracker.key.peer_id,
        client=CLIENT.peer_id,
        client_address="127.0.0.1",
        peers=[ADA.peer_id, BEN.peer_id],
        kinds=["train"],
        not_before=int(NOW),
        expires=int(NOW) + 600,
    )


async def test_the_same_wish_again_gives_the_same_token(lab: Running):
    await lab.announce(ADA, BEN)
    uuid = new_uuid()
    token = await lab.reserve(CLIENT, ADA, uuid=uuid)
    lab.clock.time += 20
    await lab.announce(ADA, sequence=2, capability=None)  # has gone since: the promise stands
    assert await lab.reserve(CLIENT, ADA, uuid=uuid) == token
    for client, peer in ((CLIENT, BEN), (OTHER, ADA)):
        with pytest.raises(Refused, match="in use"):
            await lab.reserve(client, peer, uuid=uuid)


async def test_two_at_once_with_one_uuid_get_one_token(lab: Running):
    await lab.announce(ADA)
    uuid = new_uuid()
    first, second = await asyncio.gather(*(lab.reserve(CLIENT, ADA, uuid=uuid) for _ in range(2)))
    assert first == second


async def test_peers_that_cannot_be_reserved_are_named(lab: Running):
    await lab.announce(ADA)
    await lab.announce(BEN, offer=make_offer(refuses="no sandbox"))
    with pytest.raises(Refused) as refused:
        await lab.reserve(CLIENT, ADA, BEN, CLEO)
    for words in (f"{BEN.peer_id[:8]} takes no work: no sandbox", f"{CLEO.peer_id[:8]} is not announced here"):
        assert words in refused.value.message
    lab.clock.time += 601
    with pytest.raises(Refused, match=f"{ADA.peer_id[:8]} is not announced"):
        await lab.reserve(CLIENT, ADA)


async def test_a_request_signed_long_ago_is_refused(lab: Running):
    await lab.announce(ADA)
    with pytest.raises(Refused, match="signed 31 s ago"):
        await lab.reserve(CLIENT, ADA, now=NOW - 31)


async def test_a_source_holds_so_many_reservations_until_they_end(lab: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tracker.table.admission.MOST_RESERVATIONS_OF_ONE", 2)
    await lab.announce(ADA)
    for _ in range(2):
        await lab.reserve(CLIENT, ADA, seconds=60)
    with pytest.raises(Busy, match="holds 2 reservations"):
        await lab.reserve(OTHER, ADA)
    lab.clock.time += 60
    await lab.reserve(OTHER, ADA)


async def test_peers_that_are_reserved_and_not_used_count_for_a_quarter_of_an_hour(
    lab: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tracker.table.admission.MOST_UNUSED_PEERS_OF_KEY", 3)
    await lab.announce(ADA, BEN)
    await lab.reserve(CLIENT, ADA, BEN, seconds=1)
    lab.clock.time += 2  # it is over, and counts none the less: it is remembered for late receipts
    with pytest.raises(Busy, match="your key holds 2 peers reserved of late"):
        await lab.reserve(CLIENT, ADA, BEN)
    await lab.reserve(OTHER, ADA, BEN)
    lab.clock.time += 900
    await lab.announce(ADA, BEN, sequence=int(lab.clock.now()))
    await lab.reserve(CLIENT, ADA, BEN)


async def test_of_unused_reservations_that_are_too_many_the_oldest_are_forgotten(
    lab: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tracker.ledger.issuer.MOST_UNUSED_KEPT", 2)
    await lab.announce(ADA)
    uuids = []
    for _ in range(4):
        lab.clock.time += 1
        uuids.append(open_signed(await lab.reserve(CLIENT, ADA), Token).uuid)
    await lab.tracker.issuer.sweep(lab.clock.now())
    kept = await lab.tracker._database.read(lambda database: database.execute("SELECT uuid FROM tokens").fetchall())
    assert {uuid for (uuid,) in kept} == set(uuids[2:])


# --- receipts


async def reserved(lab: Running) -> str:
    await lab.announce(ADA, BEN, sequence=int(lab.clock.now()))
    return open_signed(await lab.reserve(CLIENT, ADA, BEN), Token).uuid


def doubly(peer, reservation: str, number: int = 1, **changes: Any):
    return sign_both(CLIENT, peer, make_receipt(CLIENT, peer, reservation, number, **changes))


async def test_a_receipt_counts_once_whoever_hands_it_in(lab: Running):
    receipt = doubly(ADA, await reserved(lab))
    assert (await hand_in(lab.caller, [receipt])).new == 1
    again = await hand_in(lab.caller, [receipt, receipt])
    assert (again.new, again.known, again.refused) == (0, 2, {})
    assert lab.tracker.ledger.receipts == 1


async def test_the_same_receipt_twice_in_one_hand_counts_once(lab: Running):
    receipt = doubly(ADA, await reserved(lab))
    kept = await hand_in(lab.caller, [receipt, receipt])
    assert (kept.new, kept.known) == (1, 1)


async def test_numbers_may_come_in_any_order(lab: Running):
    reservation = await reserved(lab)
    kept = await hand_in(lab.caller, [doubly(ADA, reservation, number) for number in (7, 2, 5)])
    assert kept.new == 3


async def test_each_refused_receipt_has_its_reason_and_the_others_count(lab: Running):
    reservation = await reserved(lab)
    good = doubly(ADA, reservation)
    twins = (doubly(ADA, reservation, flops=flops) for flops in itertools.count(5))
    twin = next(one for one in twins if counts_instead(good.receipt.payload, one.receipt.payload))
    await hand_in(lab.caller, [good])
    stranger = sign_both(OTHER, ADA, make_receipt(OTHER, ADA, reservation, 4))
    kept = await hand_in(
        lab.caller,
        [
            twin,
            doubly(ADA, new_uuid()),
            stranger,
            doubly(CLEO, reservation),
            msgspec.structs.replace(good, peer_signature=bytes(64)),
            doubly(BEN, reservation),
            good,
        ],
    )
    assert (kept.new, kept.known) == (1, 1)
    words = {
        0: "another receipt has number 1",
        1: "did not give its reservation, and no token",
        2: "another client",
        3: "not in the reservation",
        4: "signature does not fit",
    }
    assert kept.refused.keys() == words.keys()
    for index, reason in kept.refused.items():
        assert words[index] in reason
    assert lab.tracker.ledger.receipts == 2


async def test_reservations_are_remembered_for_late_receipts_and_for_good_with_one(lab: Running):
    paid, late, empty = [await reserved(lab) for _ in range(3)]
    await hand_in(lab.caller, [doubly(ADA, paid)])
    lab.clock.time += 600 + KEPT_AFTER_END_S - 1
    await lab.tracker.issuer.sweep(lab.clock.now())
    assert (await hand_in(lab.caller, [doubly(ADA, late)])).new == 1
    lab.clock.time += 2
    await lab.tracker.issuer.sweep(lab.clock.now())
    kept = await hand_in(lab.caller, [doubly(ADA, paid, 2), doubly(ADA, late, 2), doubly(ADA, empty)])
    assert kept.new == 2
    assert list(kept.refused) == [2]


async def test_balances_equal_the_sum_of_receipts(start: Start):
    lab = await start()
    first, second = await reserved(lab), await reserved(lab)
    receipts = [
        doubly(peer, reservation, number, job=job, flops=number * 8 * 10**17)
        for reservation, job in ((first, "job-1"), (second, "job-2"))
        for peer in (ADA, BEN)
        for number in range(1, 11)
    ]
    opened: list[Receipt] = [open_doubly_signed(receipt) for receipt in receipts]
    await asyncio.gather(*(hand_in(lab.caller, receipts[n : n + 5]) for n in range(0, len(receipts), 3)))

    async def check(running: Running) -> None:
        everyone = await balances(running.caller)
        assert {one.key: one for one in everyone.balances} == fold(opened)
        assert everyone.receipts == len(opened)
        job = await balances(running.caller, job="job-1")
        of_job = [receipt for receipt in opened if receipt.job == "job-1"]
        assert {one.key: one for one in job.balances} == fold(of_job)
        assert job.receipts == len(of_job)
        ada = await balances(running.caller, [ADA.peer_id, OTHER.peer_id])
        assert [one.key for one in ada.balances] == [ADA.peer_id, OTHER.peer_id]
        assert ada.balances[0] == fold(opened)[ADA.peer_id]
        assert ada.balances[0].earned_flops == 88 * 10**18  # more than 64 bits
        assert ada.receipts == 20
        both = await balances(running.caller, [ADA.peer_id], "job-2")
        assert both.balances[0].earned_flops == 44 * 10**18

    await check(lab)
    await lab.stop()
    await check(await start())


# --- all together


async def test_everything_acknowledged_is_there_after_a_restart(start: Start):
    lab = await start()
    reservation = await reserved(lab)
    token = await lab.reserve(CLIENT, ADA, uuid=(uuid := new_uuid()))
    receipt = doubly(ADA, reservation)
    await hand_in(lab.caller, [receipt])
    await lab.announce(CLEO, sequence=3)
    await lab.announce(CLEO, sequence=4, capability=None)
    await lab.stop()

    again = await start(clock=lab.clock)
    assert again.tracker.key.peer_id == lab.tracker.key.peer_id
    assert again.address.fingerprint == lab.address.fingerprint
    assert await names(again) == {ADA.peer_id, BEN.peer_id}
    with pytest.raises(StaleRow):
        await again.announce(CLEO, sequence=3)
    assert await again.reserve(CLIENT, ADA, uuid=uuid) == token
    assert (await hand_in(again.caller, [receipt])).known == 1


async def test_a_stored_row_that_is_not_understood_is_passed_over(start: Start):
    lab = await start()
    await lab.announce(ADA)
    facts = pack_facts(make_row(BEN), make_offer(), since=NOW, forget_at=NOW + 999)
    statement = "INSERT INTO rows (peer, facts, profile, body) VALUES (?, ?, x'00', x'00')"
    await lab.tracker._database.write(lambda database: database.execute(statement, [BEN.peer_id, facts]))
    await lab.stop()
    assert await names(await start()) == {ADA.peer_id}


async def test_health_tells_how_it_is(lab: Running):
    await lab.announce(ADA)
    async with aiohttp.ClientSession() as client, client.get(f"{lab.address.url}/v1/health", ssl=False) as response:
        health = await response.json()
    assert health == {
        "tracker": lab.tracker.key.peer_id,
        "version": "0.1.0",
        "protocol": PROTOCOL_VERSION,
        "alive": 1,
        "receipts": 0,
        "trouble": "",
        "time": NOW,
        "you": "127.0.0.1",
    }


async def test_metrics_are_in_prometheus_form(lab: Running):
    await lab.announce(ADA)
    async with aiohttp.ClientSession() as client:
        async with client.get(f"{lab.address.url}/nothing/{'x' * 50}", ssl=False) as response:
            assert response.status == 404
        async with client.get(f"{lab.address.url}/metrics", ssl=False) as response:
            assert response.status == 404  # they are the operator's, on a listener of their own
    body, content_type = lab.tracker.metrics.page()
    page = body.decode()
    assert content_type.startswith("text/plain; version=")
    assert 'axon_refusals_total{code="AX-501"} 2.0' in page
    assert 'axon_peers{state="ready"} 1.0' in page
    assert "axon_build_info{protocol=" in page
    assert 'axon_requests_total{path="/v1/announce",status="200"} 1.0' in page
    assert 'axon_requests_total{path="other",status="404"} 2.0' in page
    assert "axon_rows_alive 1.0" in page
    assert "axon_changes_total 1.0" in page
    assert "xxx" not in page


async def test_who_asks_too_much_is_told_to_wait(lab: Running):
    for _ in range(int(BURST)):
        lab.tracker._limit.take("127.0.0.1", lab.clock.monotonic())
    with pytest.raises(Busy, match="too many requests") as refused:
        await query(lab.caller, TRAIN, 1, now=NOW)
    assert "ask again in" in refused.value.fix
    lab.clock.time += 1
    assert (await query(lab.caller, TRAIN, 1, now=NOW)).alive == 0


async def test_a_slow_body_is_given_up(lab: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("axonp2p.transport.http.http_replies.BODY_WITHIN_S", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", lab.address.port, ssl=_no_checks())
    writer.write(b"POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
    assert (await reader.readline()).startswith(b"HTTP/1.1 403")
    writer.close()


def _no_checks():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_unknown_addresses_get_a_typed_no(lab: Running):
    with pytest.raises(Refused, match="GET /v1/nothing: not found"):
        await lab.caller.call("/v1/nothing", None, Rows, 100)
    with pytest.raises(Refused, match="GET /v1/announce: method not allowed"):
        await lab.caller.call("/v1/announce", None, Row, 100)


def test_an_announce_interval_out_of_range_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="announce-every is 5 s"):
        Tracker(tmp_path, TrackerSettings(announce_every=5), ManualClock(), random.Random())


async def test_what_costs_more_counts_as_more_requests(lab: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("axonp2p.transport.http.http_replies.REFUSED_AFTER_S", 0.0)
    lab.tracker._limit._burst = 25.0  # balances of a job cost 21
    await balances(lab.caller, job="job-1")
    with pytest.raises(TooOften):
        await balances(lab.caller, job="job-1")
    lab.clock.time += 1
    for _ in range(20):
        await balances(lab.caller, [CLIENT.peer_id])
    lab.clock.time += 1
    large = Receipts(receipts=[sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, new_uuid()))] * 200)
    assert len(encode(large)) > 2.5 * BYTES_OF_A_REQUEST
    for _ in range(5):
        await lab.caller.call("/v1/receipts", large, ReceiptsKept, RECEIPTS_KEPT_LIMIT)
    with pytest.raises(TooOften):
        await asyncio.gather(
            *(lab.caller.call("/v1/receipts", large, ReceiptsKept, RECEIPTS_KEPT_LIMIT) for _ in "abc")
        )


async def test_a_query_costs_what_it_has_compared(lab: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("axonp2p.transport.http.http_replies.REFUSED_AFTER_S", 0.0)
    for number in range(40):
        await lab.announce(key_of(f"peer {number}"), offer=make_offer(packages={"numpy": f"1.{number}"}))
    clauses = ",".join(f"!={number}.*" for number in range(2, 10))
    lab.clock.time += 60
    before = bucket(lab)
    await names(lab, packages=[f"numpy{clauses}"])
    assert before - bucket(lab) == pytest.approx(1 + 0.25 + 40 * 8 / 64, abs=0.1)
    before = bucket(lab)
    await names(lab, packages=[f"lib{number}" for number in range(16)])
    assert before - bucket(lab) == pytest.approx(1 + 16 * 0.25, abs=0.1)


async def test_a_need_with_too_long_a_requirement_is_refused(lab: Running):
    with pytest.raises(MalformedMessage, match="9 clauses, and at most 8"):
        await names(lab, packages=["numpy" + ",".join(f"!={number}.*" for number in range(9))])


@pytest.mark.parametrize(
    ("ask", "cost"),
    [
        (lambda lab: log_client.history(lab.caller, CLIENT.peer_id, prove=True), 11),
        (lambda lab: log_client.history(lab.caller, CLIENT.peer_id), 4),
        (lambda lab: log_client.entries(lab.caller, [0]), 6),
        (lambda lab: log_client.leaves(lab.caller, 0, 9), 4),
        (lambda lab: log_client.consistency(lab.caller, 0, 0), 3),
        (lambda lab: log_client.evidence(lab.caller, b"e" * 32), 6),
        (lambda lab: log_client.heads(lab.caller), 1),
    ],
)
async def test_a_question_about_the_log_costs_what_is_read_for_it(
    lab: Running, ask: Callable[[Running], Awaitable[object]], cost: float
):
    before = bucket(lab)
    with contextlib.suppress(Refused):  # nothing is there yet; it was looked for
        await ask(lab)
    assert before - bucket(lab) == pytest.approx(cost, abs=0.1)


def bucket(lab: Running) -> float:
    """How much this computer may ask of the tracker."""
    return lab.tracker._limit._bucket("127.0.0.1", lab.clock.monotonic()).left
