"""A tracker may lie: what a client believes of its answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from axonp2p.errors import MalformedMessage, PeerMisbehaved
from axonp2p.identity.certificate import make_certificate
from axonp2p.ledger.ledger_client import hand_in
from axonp2p.ledger.receipt import ReceiptsKept
from axonp2p.reservation.reserving import new_uuid, reserve
from axonp2p.reservation.token import Token, TokenGiven
from axonp2p.table.records import MOST_ROWS, Contacts, KnownTrackers, ReportHeard, Row, Rows, TrackerRow
from axonp2p.table.tracker_client import TrackersTold, dht_contacts, known_trackers, query, report
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.http.http_replies import reply
from axonp2p.transport.sessions.listener import Listener
from axonp2p.wire.codec import Message
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import NOW, key_of, make_receipt, make_row, sign_both

LIAR, ADA, BEN, CLIENT, OTHER = (key_of(name) for name in ("liar", "ada", "ben", "client", "other"))

Ask = Callable[[Message], Awaitable[HttpCaller]]


@pytest.fixture
async def who_says(tmp_path: Path) -> AsyncIterator[Ask]:
    """A line to a tracker that answers everything with one message, whatever it is asked."""
    opened: list[tuple[Listener, HttpCaller]] = []

    async def begin(answer: Message) -> HttpCaller:
        async def handle(request: web.Request) -> web.Response:
            await request.read()
            return reply(answer)

        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", handle)
        certificate = make_certificate(LIAR, tmp_path / "liar.pem")
        listener = Listener(LIAR, certificate, app)
        port = await listener.start("127.0.0.1", 0)
        caller = HttpCaller(PinnedAddress("127.0.0.1", port, certificate.fingerprint), called="tracker liar")
        opened.append((listener, caller))
        return caller

    yield begin
    for listener, caller in opened:
        await caller.close()
        await listener.stop()


def rows_of(*rows: Signed[Row]) -> Rows:
    return Rows(rows=list(rows), fitting=len(rows), alive=len(rows))


async def test_forged_expired_and_malformed_rows_are_dropped(who_says: Ask):
    good = make_row(ADA)
    caller = await who_says(
        rows_of(
            sign(ADA, good),
            sign(OTHER, make_row(BEN)),
            sign(BEN, make_row(BEN, expires=int(NOW) - 60)),
            sign(BEN, make_row(BEN, expires=int(NOW) + 10**6)),
            Signed(signer=BEN.peer_id, payload=b"x" * 5000, signature=bytes(64)),
        )
    )
    found = await query(caller, {}, 50, now=NOW)
    assert (found.rows, found.dropped) == ([good], 4)


async def test_of_two_rows_of_a_peer_the_newer_counts(who_says: Ask):
    old, new = make_row(ADA, sequence=1), make_row(ADA, sequence=2)
    caller = await who_says(rows_of(sign(ADA, new), sign(ADA, old)))
    assert (await query(caller, {}, 50, now=NOW)).rows == [new]


async def test_a_withdrawal_is_no_offer(who_says: Ask):
    old, gone = make_row(ADA, sequence=1), make_row(ADA, sequence=2, capability=None)
    caller = await who_says(rows_of(sign(ADA, old), sign(ADA, gone)))
    assert (await query(caller, {}, 50, now=NOW)).rows == []


async def test_more_rows_than_asked_for_are_not_read(who_says: Ask):
    caller = await who_says(rows_of(*(sign(key_of(f"{n}"), make_row(key_of(f"{n}"))) for n in range(5))))
    assert len((await query(caller, {}, 3, now=NOW)).rows) == 3
    assert len((await query(caller, {}, MOST_ROWS * 2, now=NOW)).rows) == 5


async def test_a_token_for_something_else_is_not_taken(who_says: Ask):
    uuid = new_uuid()
    token = Token(
        uuid=uuid,
        issuer=LIAR.peer_id,
        client=CLIENT.peer_id,
        client_address="127.0.0.1",
        peers=[ADA.peer_id],
        kinds=["train"],
        not_before=int(NOW),
        expires=int(NOW) + 60,
    )

    async def ask(answer: Token, signer=LIAR) -> Signed[Token]:
        caller = await who_says(TokenGiven(token=sign(signer, answer)))
        return await reserve(caller, CLIENT, [ADA.peer_id], uuid=uuid, kinds=["train"], seconds=60, now=NOW)

    assert await ask(token) == sign(LIAR, token)
    for change in (
        {"uuid": new_uuid()},
        {"client": OTHER.peer_id},
        {"peers": [ADA.peer_id, BEN.peer_id]},
        {"kinds": ["infer"]},
        {"issuer": OTHER.peer_id},
    ):
        with pytest.raises(PeerMisbehaved):
            await ask(msgspec.structs.replace(token, **change))
    with pytest.raises(PeerMisbehaved):
        await ask(token, OTHER)


@pytest.mark.parametrize(
    "answer",
    [
        ReceiptsKept(new=0, known=0),
        ReceiptsKept(new=2, known=0),
        ReceiptsKept(new=0, known=0, reasons={"1": "no"}),
        ReceiptsKept(new=1, known=0, reasons={"0": "no"}),
    ],
)
async def test_a_tracker_must_account_for_every_receipt(who_says: Ask, answer: ReceiptsKept):
    receipt = sign_both(CLIENT, ADA, make_receipt(CLIENT, ADA, new_uuid()))
    with pytest.raises(MalformedMessage, match="does not account"):
        await hand_in(await who_says(answer), [receipt])


async def test_only_trackers_that_signed_for_themselves_are_believed(who_says: Ask):
    def named(**changes: object) -> TrackerRow:
        usual = {"tracker": ADA.peer_id, "address": "https://192.0.2.1:7070", "sequence": 1, "expires": int(NOW) + 60}
        return TrackerRow(**(usual | {"database": "0" * 32} | changes))  # type: ignore[arg-type]

    caller = await who_says(
        KnownTrackers(trackers=[sign(ADA, named()), sign(OTHER, named()), sign(ADA, named(expires=int(NOW) - 1))])
    )
    assert await known_trackers(caller, now=NOW) == TrackersTold(ADA.peer_id, [named()], None)


async def test_contacts_and_reports_are_short_questions(who_says: Ask):
    assert await dht_contacts(await who_says(Contacts(contacts=["192.0.2.1:7071"]))) == ["192.0.2.1:7071"]
    heard = await report(await who_says(ReportHeard(checking=True)), CLIENT, ADA.peer_id, now=NOW)
    assert heard.checking
