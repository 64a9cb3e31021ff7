"""Peers of one local network hear of each other: what a service says, and two of them over multicast on loopback."""

from __future__ import annotations

import asyncio

import pytest

from axonp2p.table.dht.lan import LanPeer, own_hosts, read_peer
from axonp2p.table.dht.mdns import Lan
from tests.fakes import key_of

TRACKER = "https://lab.local:7070#" + "a" * 52
PEER = key_of("anna").peer_id
SAID: dict[bytes, bytes | None] = {
    b"peer": PEER.encode(),
    b"name": b"anna",
    b"dht": b"7071",
    b"listens": b"7072",
    b"tracker0": TRACKER.encode(),
}


def test_a_service_is_read() -> None:
    found = read_peer(SAID, ["192.168.1.7"])
    assert found == LanPeer(PEER, "anna", ["192.168.1.7"], 7071, 7072, [TRACKER])
    assert found.contacts == ["192.168.1.7:7071"]


def test_a_peer_without_a_dht_node_is_no_contact() -> None:
    found = read_peer(SAID | {b"dht": b"0"}, ["192.168.1.7"])
    assert found is not None
    assert found.contacts == []


@pytest.mark.parametrize(
    "changes",
    [
        {b"peer": b"nobody"},
        {b"peer": None},
        {b"peer": b"\xff" * 52},
        {b"name": b"x" * 33},
        {b"dht": b"70000"},
        {b"dht": b"-1"},
        {b"dht": b"many"},
        {b"tracker0": b"http://lab.local:7070"},
    ],
)
def test_a_service_that_says_something_else_is_none_of_ours(changes: dict[bytes, bytes | None]) -> None:
    assert read_peer(SAID | changes, ["192.168.1.7"]) is None


def test_what_is_too_long_is_left_out() -> None:
    found = read_peer(SAID | {b"tracker0": b"https://" + b"x" * 240 + b":1"}, ["192.168.1.7"] * 20)
    assert found is not None
    assert found.trackers == []
    assert len(found.hosts) == 8


def test_loopback_stands_last() -> None:
    assert own_hosts()[-1] == "127.0.0.1"


async def test_two_on_one_network_hear_of_each_other() -> None:
    heard: dict[str, LanPeer] = {}
    everybody = asyncio.Event()

    def hear(peer: LanPeer) -> None:
        heard[peer.peer] = peer
        everybody.set()

    telling = Lan(PEER, lambda peer: None, ["127.0.0.1"])
    looking = Lan(None, hear, ["127.0.0.1"])
    try:
        if not (await telling.start() and await looking.start()):
            pytest.skip("no multicast on this machine")
        own = LanPeer(PEER, "anna", ["127.0.0.1"], 7071, 7072, [TRACKER])
        await telling.tell(own)
        async with asyncio.timeout(60):
            await everybody.wait()
        assert heard == {PEER: own}
    finally:
        await asyncio.gather(looking.stop(), telling.stop())
