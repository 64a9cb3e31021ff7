"""A roster is a client's word; who its members are and where they are found is the members' own."""

from __future__ import annotations

from typing import Any

import pytest

from axonp2p.errors import BadSignature, MalformedMessage, StaleRow
from axonp2p.jobs.messages import Member, SetRoster
from axonp2p.reservation.token import LONGEST_S
from axonp2p.wire.envelope import encode_signed
from peer_daemon.execution.roster import read_roster
from tests.fakes import NOW, key_of, make_row

ME, ADA, BEN = key_of("me"), key_of("ada"), key_of("ben")
RESERVATION = "00000000-0000-4000-8000-000000000000"


def member(rank: int, key: Any, signer: Any = None, **changes: Any) -> Member:
    row = make_row(key, **changes)
    return Member(rank=rank, reservation=RESERVATION, row=encode_signed(signer or key, row))


def read(*members: Member, rank: int = 0, epoch: int = 1) -> list[Any]:
    roster = SetRoster(epoch=epoch, rank=rank, members=list(members))
    return read_roster(roster, peer=ME.peer_id, reservation=RESERVATION, epoch=0, now=NOW)


def test_members_are_found_where_their_own_rows_say() -> None:
    relay = f"https://192.0.2.1:7070#{'a' * 52}"
    told = read(member(0, ME), member(1, ADA, name="ada", addresses=["192.0.2.9:7"], relays=[relay], dialable=False))
    assert [one.peer for one in told] == [ME.peer_id, ADA.peer_id]
    ada = told[1]
    assert (ada.name, ada.addresses, ada.relays, ada.dialable) == (
        "ada",
        ["192.0.2.9:7"],
        [relay],
        False,
    )


def test_a_row_that_its_peer_did_not_sign_is_no_member() -> None:
    with pytest.raises(BadSignature, match="was signed by"):
        read(member(0, ME), member(1, ADA, signer=BEN))


def test_a_changed_row_is_no_member() -> None:
    good = member(1, ADA)
    changed = Member(rank=1, reservation=RESERVATION, row=good.row.replace(b"127.0.0.1:7071", b"127.0.0.1:7072"))
    with pytest.raises(BadSignature):
        read(member(0, ME), changed)


def test_a_row_from_before_any_lease_is_not_dialled() -> None:
    with pytest.raises(StaleRow):
        read(member(0, ME), member(1, ADA, expires=int(NOW) - LONGEST_S - 1))
    assert len(read(member(0, ME), member(1, ADA, expires=int(NOW) - LONGEST_S + 1))) == 2


@pytest.mark.parametrize(
    ("members", "rank", "epoch", "why"),
    [
        ([member(0, ADA)], 0, 1, "does not have the rank"),
        ([member(0, ME)], 1, 1, "does not have the rank"),
        ([member(0, ME), member(1, ME)], 0, 1, "same rank or peer twice"),
        ([member(0, ME), member(1, ADA), member(1, BEN)], 0, 1, "same rank or peer twice"),
        ([member(0, ME)], 0, 0, "a roster of epoch 0 after one of epoch 0"),
    ],
)
def test_a_roster_that_cannot_be_is_refused(members: list[Member], rank: int, epoch: int, why: str) -> None:
    with pytest.raises(MalformedMessage, match=why):
        read(*members, rank=rank, epoch=epoch)
