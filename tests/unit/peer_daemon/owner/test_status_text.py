"""What `axon-peer status` says of how the peer is reached, and of its receipts."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from peer_daemon.control.status import Carried, LedgerNow
from peer_daemon.owner.status_text import local_time, status_text
from tests.laboratory.paper_steering import TRAINING


def said(**changes: object) -> str:
    network = msgspec.structs.replace(TRAINING.network, **changes)
    return status_text(msgspec.structs.replace(TRAINING, network=network), local_time)


def test_relays_and_the_router_are_named_where_nobody_can_call():
    text = said(reachable="no", relays=["192.0.2.1:7070", "192.0.2.2:7070"], router="no router here speaks UPnP")
    assert "others cannot call it" in text
    assert "but reach it through 2 relays (192.0.2.1:7070, 192.0.2.2:7070)" in text
    assert "the router: no router here speaks UPnP" in text
    assert "router" not in said(reachable="yes", router="forwards port 7071 (UPnP)")


@pytest.mark.parametrize(
    ("on", "words"),
    [(True, "a relay for 2 peers, 9 MiB so far"), (False, "a relay for others once they can call it")],
)
def test_a_relay_says_what_it_carries(on: bool, words: str):
    assert words in said(carried=Carried(on=on, peers=2, streams=4, bytes=9 * 2**20))


def test_what_looks_at_trackers_logs_gave_is_told_a_tracker_a_line() -> None:
    told = status_text(TRAINING, lambda at: datetime.fromtimestamp(at, UTC))
    assert "ledger   lab.local:7070 at 11:40: 6 receipts that were picked are proved to be in its log" in told
    assert "ledger   attic.example:7070 at 06:48: " in told
    silent = LedgerNow(silent="no tracker answers", silent_at=TRAINING.now)
    told = status_text(msgspec.structs.replace(TRAINING, ledger=silent), lambda at: datetime.fromtimestamp(at, UTC))
    assert "ledger   nothing could be checked at 12:00: no tracker answers" in told
    assert "ledger" not in status_text(msgspec.structs.replace(TRAINING, ledger=LedgerNow()), local_time)
