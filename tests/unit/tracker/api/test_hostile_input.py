"""Whatever is sent to a tracker's addresses: a typed no, nothing stored changes, and it goes on."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import ssl
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import aiohttp
import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axonp2p.ledger.log_messages import (
    LOG_ASKED_LIMIT,
    EntriesAsked,
    HistoryAsked,
    InclusionAsked,
    LeavesAsked,
    ProofAsked,
)
from axonp2p.ledger.merkle import leaf_hash
from axonp2p.ledger.receipt import RECEIPTS_LIMIT, BalancesAsked, Receipts, place_key
from axonp2p.ledger.voiding import VOIDING_LIMIT, EvidenceAsked
from axonp2p.peers.capability import Need, as_map
from axonp2p.reservation.token import ReserveRequest, Token
from axonp2p.table.records import QUERY_LIMIT, TRACKERS_LIMIT, KnownTrackers, Query, Row
from axonp2p.table.sync_messages import ASKED_LIMIT, DigestsAsked, Push
from axonp2p.table.tracker_client import query
from axonp2p.table.tracker_standing import TrackerStanding
from axonp2p.transport.messages import Refusal
from axonp2p.wire.codec import Message, decode_as, encode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, sign
from tests.fakes import NOW, key_of, make_receipt, make_request, make_row, sign_both
from tests.laboratory.convictions import WITNESSES, evidence_against, voiding_of
from tests.unit.tracker.conftest import Running, Start
from tracker.api.routes import BALANCES_ASKED_LIMIT, EVIDENCE_ASKED_LIMIT
from tracker.replication.own_tracker_row import OwnTrackerRow
from tracker.replication.tracker_book import KnownTracker

PEER, CLIENT, LATER = key_of("peer"), key_of("client"), key_of("later")
REQUEST = make_request([PEER.peer_id])
RECEIPT = sign_both(CLIENT, PEER, make_receipt(CLIENT, PEER, REQUEST.uuid))
WITH_WITNESSES = encode(
    sign(
        key_of("a tracker that is gone"),
        Token(
            uuid="00000000-0000-4000-8000-000000000001",
            issuer=key_of("a tracker that is gone").peer_id,
            client=CLIENT.peer_id,
            client_address="127.0.0.1",
            peers=[PEER.peer_id, *(key_of(name).peer_id for name in WITNESSES)],
            kinds=["train"],
            not_before=int(NOW),
            expires=int(NOW) + 600,
        ),
    )
)
CONVICTION = voiding_of(
    CLIENT, evidence_against(PEER, CLIENT, "job-2", "00000000-0000-4000-8000-000000000001"), [WITH_WITNESSES]
)

# Each of these has been said once already: again it is acknowledged, and changes nothing.
SAID: dict[str, Message] = {
    "/v1/announce": sign(PEER, make_row(PEER)),
    "/v1/reserve": sign(CLIENT, REQUEST),
    "/v1/receipts": Receipts(receipts=[RECEIPT]),
    "/v1/voidings": CONVICTION,
    "/v1/evidence": EvidenceAsked(sha256=hashlib.sha256(CONVICTION.evidence).digest()),
    "/v1/query": Query(need=as_map(Need())),
    "/v1/balances": BalancesAsked(keys=[PEER.peer_id]),
    "/v1/push": sign(CLIENT, Push(rows=[sign(PEER, make_row(PEER))], renewals=[b"r" * 90], to=LATER.peer_id)),
    "/v1/sync": DigestsAsked(oldest=0, newest=2**32 - 1, groups=bytes(8)),
    "/v1/trackers": KnownTrackers(trackers=[OwnTrackerRow(CLIENT, "https://127.0.0.1:1", "0" * 32).at(NOW)]),
    "/v1/consistency": ProofAsked(first=1, second=1),
    "/v1/inclusion": InclusionAsked(
        place=place_key(make_receipt(CLIENT, PEER, REQUEST.uuid)), leaf=leaf_hash(encode(RECEIPT))
    ),
    "/v1/leaves": LeavesAsked(first=0, count=1),
    "/v1/entries": EntriesAsked(numbers=[0]),
    "/v1/history": HistoryAsked(key=PEER.peer_id, prove=True),
}
LOG_PATHS = ("/v1/consistency", "/v1/inclusion", "/v1/leaves", "/v1/entries", "/v1/history")
CAPS = {
    "/v1/announce": Row.LIMIT + ENVELOPE_OVERHEAD,
    "/v1/reserve": ReserveRequest.LIMIT + ENVELOPE_OVERHEAD,
    "/v1/receipts": RECEIPTS_LIMIT,
    "/v1/query": QUERY_LIMIT,
    "/v1/voidings": VOIDING_LIMIT,
    "/v1/evidence": EVIDENCE_ASKED_LIMIT,
    "/v1/balances": BALANCES_ASKED_LIMIT,
    "/v1/push": Push.LIMIT + ENVELOPE_OVERHEAD,
    "/v1/sync": ASKED_LIMIT,
    "/v1/trackers": TRACKERS_LIMIT,
    **dict.fromkeys(LOG_PATHS, LOG_ASKED_LIMIT),
}
# Unsigned questions may become other good questions by a flipped bit; receipts are refused one by one in a good answer.
MAY_BE_ANSWERED = (
    *("/v1/query", "/v1/balances", "/v1/receipts", "/v1/voidings", "/v1/push", "/v1/sync", "/v1/trackers"),
    *LOG_PATHS,
)
PATHS = st.sampled_from(sorted(SAID))

drive = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass
class Target:
    """A tracker with one peer, one reservation and one receipt, and all that it has stored."""

    lab: Running
    http: aiohttp.ClientSession
    before: str

    async def send(self, path: str, body: Any, **more: Any) -> tuple[int, bytes]:
        self.lab.clock.time += 0.01  # or the rate limit would answer
        async with self.http.post(self.lab.address.url + path, data=body, ssl=False, **more) as response:
            return response.status, await response.read()

    async def must_refuse(self, path: str, body: Any, **more: Any) -> Refusal | None:
        """Send; the answer is a typed no (or where that is no harm, a yes), and nothing has changed."""
        status, answer = await self.send(path, body, **more)
        assert await stored(self.lab) == self.before
        if status == 200:
            assert path in MAY_BE_ANSWERED
            return None
        assert 400 <= status < 500, answer
        return decode_as(answer, Refusal, 8192)


async def stored(lab: Running) -> str:
    """All that a tracker holds, on disk and in memory, as text to compare."""
    tables = ("rows", "tokens", "receipts", "entries", "tiles", "evidence", "foreign_tokens")
    on_disk = await lab.tracker._database.read(
        lambda database: [database.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
    )
    index, books = lab.tracker.table.index, lab.tracker.ledger._books
    rows = sorted((peer, number, index.signed_of(peer)) for peer, number in index.rows())
    return repr((on_disk, rows, index.alive(lab.clock.now()), books.largest(10), books.receipts))


@pytest.fixture
async def target(start: Start, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Target]:
    lab = await start()
    sync = lab.tracker._joined()
    monkeypatch.setattr(sync.own, "peer", LATER.peer_id)
    pusher = KnownTracker("https://127.0.0.1:1", TrackerStanding.VOUCHED, CLIENT.peer_id)
    monkeypatch.setattr(sync.book, "living_one", lambda tracker: pusher if tracker == pusher.tracker else None)
    lab.trusts(key_of("a tracker that is gone"))
    async with aiohttp.ClientSession() as http:
        target = Target(lab, http, "")
        for path, message in SAID.items():
            if path in LOG_PATHS:
                lab.clock.time += 2  # the head that is shown may be a second old
            status, answer = await target.send(path, encode(message))
            assert status == 200, answer
        target.before = await stored(lab)
        yield target
    # It goes on, as if nothing had been.
    await lab.announce(LATER)
    found = await query(lab.caller, as_map(Need()), 10, now=lab.clock.now())
    assert {row.peer for row in found.rows} == {PEER.peer_id, LATER.peer_id}


async def test_what_was_said_already_changes_nothing(target: Target):
    for path, message in SAID.items():
        assert (await target.send(path, encode(message)))[0] == 200
    assert await stored(target.lab) == target.before


@drive
@given(path=PATHS, body=st.binary(max_size=2000))
async def test_random_bytes(target: Target, path: str, body: bytes):
    await target.must_refuse(path, body)


@drive
@given(path=PATHS, cut=st.floats(0, 1, exclude_max=True))
async def test_truncated_messages(target: Target, path: str, cut: float):
    whole = encode(SAID[path])
    refusal = await target.must_refuse(path, whole[: int(len(whole) * cut)])
    assert refusal is not None
    assert refusal.code == "AX-201"


@drive
@given(path=PATHS, place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
async def test_flipped_bits(target: Target, path: str, place: float, bit: int):
    body = bytearray(encode(SAID[path]))
    body[int(len(body) * place)] ^= 1 << bit
    refusal = await target.must_refuse(path, bytes(body))
    assert refusal is None or refusal.code in ("AX-200", "AX-201", "AX-202", "AX-203", "AX-400", "AX-501")


@drive
@given(path=PATHS, extra=st.integers(1, 100_000), announced=st.booleans())
async def test_bodies_above_their_cap(target: Target, path: str, extra: int, announced: bool):
    body = encode(SAID[path]).ljust(CAPS[path] + extra, b"\0")

    async def in_parts() -> AsyncIterator[bytes]:  # nobody says beforehand how much comes
        for start in range(0, len(body), 16_384):
            yield body[start : start + 16_384]

    refusal = await target.must_refuse(path, body if announced else in_parts())
    assert refusal is not None
    assert refusal.code == "AX-202"


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=80),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10) | st.integers(0, 9), inner, max_size=4)
    ),
    max_leaves=12,
)


@drive
@given(path=PATHS, value=plain_values)
async def test_messages_of_other_shapes(target: Target, path: str, value: Any):
    await target.must_refuse(path, msgpack.packb(value))


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value inside a plain message."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(place for name, inner in below for place in places(inner, (*here, name)))]


def changed(value: Any, place: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    if not place:
        return change(value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = changed(value[place[0]], place[1:], change)
    return copy


@drive
@given(path=PATHS, data=st.data(), value=plain_values)
async def test_messages_with_one_value_replaced(target: Target, path: str, data: st.DataObject, value: Any):
    plain = msgpack.unpackb(encode(SAID[path]))
    place = data.draw(st.sampled_from(places(plain)))
    await target.must_refuse(path, msgpack.packb(changed(plain, place, lambda _: value)))


@drive
@given(data=st.data(), value=plain_values)
async def test_rows_signed_by_their_peer_with_one_value_replaced(target: Target, data: st.DataObject, value: Any):
    """The signature holds, so only the checks behind it are left."""
    plain = msgpack.unpackb(encode(make_row(PEER, sequence=0)))
    place = data.draw(st.sampled_from([place for place in places(plain) if place and place[0] != "sequence"]))
    payload = msgpack.packb(changed(plain, place, lambda _: value))
    envelope = {"signer": PEER.peer_id, "payload": payload, "signature": PEER.sign(Row.PURPOSE, payload)}
    refusal = await target.must_refuse("/v1/announce", msgpack.packb(envelope))
    assert refusal is not None


@drive
@given(data=st.data(), value=plain_values)
async def test_requests_signed_by_their_client_with_one_value_replaced(target: Target, data: st.DataObject, value: Any):
    plain = msgpack.unpackb(encode(REQUEST))
    place = data.draw(st.sampled_from([place for place in places(plain) if place and place[0] not in ("uuid", "time")]))
    body = changed(plain, place, lambda _: value)
    if body != plain:
        payload = msgpack.packb(body)
        envelope = {
            "signer": CLIENT.peer_id,
            "payload": payload,
            "signature": CLIENT.sign(ReserveRequest.PURPOSE, payload),
        }
        assert await target.must_refuse("/v1/reserve", msgpack.packb(envelope)) is not None


async def test_deep_nesting_and_huge_promises(target: Target):
    bodies = (
        b"\x91" * 4000,  # lists in lists
        b"\x81\xa1a" * 1300,  # maps in maps
        b"\xdd\xff\xff\xff\xff",  # a list of four billion
        b"\xdf\xff\xff\xff\xff",  # a map of as many
        b"\xc6\xff\xff\xff\xff",  # four billion bytes
        b"\xc9\xff\xff\xff\xff\x01",  # and of an unknown kind
        b"\x81\xa1a\xc0" * 300,  # more than one message
        b"",
    )
    for path, body in itertools.product(sorted(SAID), bodies):
        assert await target.must_refuse(path, body) is not None, (path, body[:8])


@cache
def packed_zeros() -> bytes:
    """Fifty million, packed once for all addresses."""
    return zlib.compress(b"\0" * 50_000_000)


async def test_packed_bodies_are_not_unpacked(target: Target):
    for path, coding in itertools.product(sorted(SAID), ["gzip", "deflate", "br"]):
        refusal = await target.must_refuse(path, packed_zeros(), headers={"Content-Encoding": coding})
        assert refusal is not None, (path, coding)


async def test_other_methods_and_addresses(target: Target):
    paths = [*sorted(SAID), "/", "/v1", "/v1/announce/", "/../etc/passwd", "/v1/" + "x" * 2000]
    for path, method in itertools.product(paths, ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"]):
        if (method, path) == ("GET", "/v1/trackers"):
            continue  # which it answers
        target.lab.clock.time += 0.01  # or the rate limit would answer
        async with target.http.request(method, target.lab.address.url + path, data=b"x", ssl=False) as response:
            assert response.status in (404, 405), (method, path)
            decode_as(await response.read(), Refusal, 8192)
        assert await stored(target.lab) == target.before, (method, path)


async def test_a_caller_who_leaves_in_the_middle(target: Target, capsys: pytest.CaptureFixture[str]):
    for _ in range(5):

        async def half() -> AsyncIterator[bytes]:
            yield encode(SAID["/v1/announce"])[:50]
            raise ConnectionAbortedError

        with pytest.raises((aiohttp.ClientError, OSError)):
            await target.send("/v1/announce", half())
    assert await stored(target.lab) == target.before
    assert "Traceback" not in capsys.readouterr().out  # whoever hangs up fills nobody's log


@pytest.mark.parametrize(
    "raw",
    [
        b"POST /v1/announce HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nnot a size\r\n0\r\n\r\n",
        b"POST /v1/announce HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/announce HTTP/1.1\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
        b"\x00\x01\x02 not http at all\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_answered_as_a_bad_request(
    target: Target, raw: bytes, capsys: pytest.CaptureFixture[str]
):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", target.lab.address.port, ssl=context)
    writer.write(raw)
    assert b" 400 " in await reader.readline()
    writer.close()
    assert await stored(target.lab) == target.before
    assert "Traceback" not in capsys.readouterr().out
