"""In which order the ways to a peer are tried."""

from __future__ import annotations

from axonp2p.identity.certificate_bytes import fingerprint_text
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.ways import (
    HEAD_START_S,
    LAST_DIRECT_AGAIN_S,
    BareWhereabouts,
    direct_again_in,
    direct_ways,
    patience,
    ways_to,
)
from tests.fakes import key_of

PIN = fingerprint_text(bytes(32))
NEAR, FAR = f"https://192.0.2.1:7070#{PIN}", f"https://relay.example:7070#{PIN}"
OTTER = key_of("otter").peer_id


def place(dialable: bool | None = None, relays: tuple[str, ...] = (NEAR, FAR)) -> BareWhereabouts:
    return BareWhereabouts(OTTER, ["192.0.2.9:7071", "nonsense"], bytes(range(32)), relays, dialable)


def names(*ways: object) -> list[str]:
    return [str(way) for way in ways]


def test_direct_first_then_each_relay():
    ways = ways_to(place(), None)
    assert names(*ways) == ["192.0.2.9:7071", "relay 192.0.2.1:7070", "relay relay.example:7070"]
    assert [way.address.fingerprint for way in ways] == [bytes(range(32))] * 3
    assert ways[1].address.host == OTTER
    assert ways[1].relay is not None
    assert ways[1].relay.fingerprint == bytes(32)


def test_who_could_not_be_dialled_is_reached_through_relays_at_once():
    assert names(*ways_to(place(dialable=False), None)) == ["relay 192.0.2.1:7070", "relay relay.example:7070"]
    assert names(*ways_to(place(dialable=False, relays=()), None)) == ["192.0.2.9:7071"]  # there is nothing else to try
    assert names(*direct_ways(place(dialable=False), None)) == ["192.0.2.9:7071"]


def test_a_relay_that_has_just_failed_comes_last():
    ways = ways_to(place(dialable=False), None, avoid="relay 192.0.2.1:7070")
    assert names(*ways) == ["relay relay.example:7070", "relay 192.0.2.1:7070"]


def test_not_everybody_comes_through_the_same_relay():
    assert names(*ways_to(place(dialable=False), None, spread=7)) == [
        "relay relay.example:7070",
        "relay 192.0.2.1:7070",
    ]


def test_a_direct_way_gets_a_short_time_when_there_is_a_relay():
    with_relay, without = ways_to(place(), None), ways_to(place(relays=()), None)
    assert [patience(way, with_relay, 10) for way in with_relay] == [HEAD_START_S, 10, 10]
    assert patience(without[0], without, 10) == 10


def test_a_direct_way_is_looked_for_ever_more_seldom():
    waits = [direct_again_in(tried) for tried in range(20)]
    assert waits == sorted(waits)
    assert waits[0] == 60
    assert waits[-1] == LAST_DIRECT_AGAIN_S


def test_what_may_not_be_dialled_is_no_way():
    known_publicly = DialPolicy(lambda: ["8.8.8.8"])
    relays = (f"https://10.0.0.1:7070#{PIN}", f"https://relay.example:7070#{PIN}", f"https://1.1.1.1:7070#{PIN}")
    where = BareWhereabouts(
        OTTER, ["127.0.0.1:22", "192.168.1.1:80", "9.9.9.9:7071", "router.lan:80"], bytes(32), relays, None
    )
    assert names(*ways_to(where, known_publicly)) == ["9.9.9.9:7071", "relay 1.1.1.1:7070"]
    assert names(*direct_ways(where, known_publicly)) == ["9.9.9.9:7071"]
