"""Receipts for reservations that another tracker, or the peer itself, gave."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import sqlite_utils

from axonp2p.errors import AxonError, Refused
from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger.ledger_client import hand_in
from axonp2p.reservation.reserving import new_uuid
from axonp2p.reservation.token import Token
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import NOW, key_of, make_receipt, sign_both
from tests.unit.tracker.conftest import Running, Start
from tracker.ledger.first_sight import stored_among
from tracker.ledger.foreign_tokens import open_foreign_token, token_for
from tracker.ledger.known_reservations import Brought, KnownReservations
from tracker.storage.database import Database

CLIENT, ADA, BEN, FAR, OTHER = (key_of(name) for name in ("client", "ada", "ben", "far", "other"))


def token_by(signer: PrivateKey, *peers: PrivateKey, **changes: Any) -> Signed[Token]:
    usual: dict[str, Any] = {
        "uuid": new_uuid(),
        "issuer": signer.peer_id,
        "client": CLIENT.peer_id,
        "client_address": "127.0.0.1",
        "peers": [peer.peer_id for peer in peers],
        "kinds": ["train"],
        "not_before": int(NOW),
        "expires": int(NOW) + 600,
    }
    return sign(signer, Token(**(usual | changes)))


def doubly(peer: PrivateKey, reservation: str, number: int = 1, client: PrivateKey = CLIENT):
    return sign_both(client, peer, make_receipt(client, peer, reservation, number))


async def test_another_trackers_token_makes_its_receipts_good(lab: Running):
    lab.trusts(FAR)
    uuid = new_uuid()
    token = encode(token_by(FAR, ADA, BEN, uuid=uuid))
    kept = await hand_in(lab.caller, [doubly(ADA, uuid), doubly(BEN, uuid)], [token])
    assert (kept.new, kept.refused) == (2, {})


async def test_a_peers_own_token_is_for_itself_alone(lab: Running):
    await lab.announce(ADA, BEN)
    uuid = new_uuid()
    token = encode(token_by(ADA, ADA, uuid=uuid))
    assert (await hand_in(lab.caller, [doubly(ADA, uuid)], [token])).new == 1
    both = encode(token_by(ADA, ADA, BEN, uuid=(for_two := new_uuid())))
    kept = await hand_in(lab.caller, [doubly(BEN, for_two)], [both])
    assert "for itself alone" in kept.refused[0]


async def test_the_token_comes_once_and_is_remembered_also_after_a_restart(start: Start, tmp_path: Path):
    first = await start()
    await first.announce(ADA)
    uuid = new_uuid()
    await hand_in(first.caller, [doubly(ADA, uuid)], [encode(token_by(FAR, ADA, uuid=uuid))])
    await first.stop()
    again = await start(clock=first.clock)
    assert (await hand_in(again.caller, [doubly(ADA, uuid), doubly(ADA, uuid, 2)])).new == 1


async def test_a_token_without_a_good_receipt_leaves_nothing_behind(lab: Running):
    await lab.announce(ADA, BEN)
    uuid = new_uuid()
    token = encode(token_by(FAR, ADA, uuid=uuid))
    assert "not in the reservation" in (await hand_in(lab.caller, [doubly(BEN, uuid)], [token])).refused[0]
    assert "no token of it" in (await hand_in(lab.caller, [doubly(ADA, uuid)])).refused[0]


async def test_a_strangers_token_with_the_same_uuid_stands_in_nobodys_way(lab: Running):
    await lab.announce(ADA, BEN)
    uuid = new_uuid()
    squatter = encode(token_by(OTHER, BEN, uuid=uuid, client=key_of("mallory").peer_id))
    bait = sign_both(key_of("mallory"), BEN, make_receipt(key_of("mallory"), BEN, uuid))
    assert (await hand_in(lab.caller, [bait], [squatter])).new == 1
    true = encode(token_by(FAR, ADA, uuid=uuid))
    assert (await hand_in(lab.caller, [doubly(ADA, uuid)], [true])).new == 1


async def test_a_forged_token_is_told_and_the_other_receipts_count(lab: Running):
    lab.trusts(FAR)
    uuid, good = new_uuid(), new_uuid()
    forged = token_by(FAR, ADA, uuid=uuid)
    forged = Signed(signer=OTHER.peer_id, payload=forged.payload, signature=forged.signature)
    kept = await hand_in(
        lab.caller,
        [doubly(ADA, uuid), doubly(ADA, good)],
        [encode(forged), b"garbage", encode(token_by(FAR, ADA, uuid=good))],
    )
    assert kept.new == 1
    assert "that can be believed" in kept.refused[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"issuer": OTHER.peer_id}, "was signed by"),
        ({"client": FAR.peer_id}, "gave itself"),
        ({"expires": int(NOW) + 48 * 3600}, "more than"),
    ],
)
def test_tokens_that_no_receipt_may_stand_on(changes: dict[str, Any], words: str):
    with pytest.raises(AxonError, match=words):
        open_foreign_token(encode(token_by(FAR, ADA, **changes)))


def test_tokens_of_a_client_are_found_without_those_of_strangers_under_its_reservations_name(tmp_path: Path):
    asked: list[str] = []
    database = Database(tmp_path / "tracker.db")

    def ask(tables: sqlite_utils.Database) -> list[str]:
        tables.conn.set_trace_callback(asked.append)
        token_for(tables, uuid := new_uuid(), CLIENT.peer_id, ADA.peer_id)
        stored_among(tables, {(uuid, CLIENT.peer_id)})
        with pytest.raises(Refused):
            KnownReservations(tables, Brought()).that_fits(uuid, CLIENT.peer_id, ADA.peer_id)
        tables.conn.set_trace_callback(None)
        statements = [one for one in asked if "foreign_tokens" in one]
        plans = [tables.execute(f"EXPLAIN QUERY PLAN {one}").fetchall() for one in statements]
        return [row[3] for plan in plans for row in plan if "foreign_tokens" in row[3]]

    plans = database.load(ask)
    asyncio.run(database.close())
    assert len(plans) == 3
    assert all("(uuid=? AND client=?)" in plan for plan in plans), plans
