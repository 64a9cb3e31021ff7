"""A tracker calls whom it should, and is no weapon."""

from __future__ import annotations

import pytest

from axonp2p.transport.dial_policy import DialPolicy
from tests.fakes import HERE, key_of, make_row
from tracker.probing.probe_policy import BURST, LOOK_AGAIN_S, LOOKS_A_SECOND, FirstProbes, worth_asking, worth_calling

ADA, BEN = key_of("ada"), key_of("ben")


PUBLIC, HOME = DialPolicy(lambda: ["1.0.0.1"]), DialPolicy(lambda: ["10.0.0.1"])


@pytest.mark.parametrize(
    ("tracker", "addresses", "source", "called"),
    [
        (PUBLIC, ["8.8.8.8:7071"], "1.1.1.1", ["8.8.8.8:7071"]),
        (PUBLIC, ["127.0.0.1:7071"], "1.1.1.1", []),
        (PUBLIC, ["10.0.0.5:7071", "8.8.8.8:7071"], "1.1.1.1", ["8.8.8.8:7071"]),
        (PUBLIC, ["10.0.0.5:7071"], "10.0.0.9", []),
        (HOME, ["10.0.0.5:7071"], "10.0.0.9", ["10.0.0.5:7071"]),
        (HOME, ["10.0.0.5:7071"], "1.1.1.1", []),
        (HERE, ["127.0.0.1:7071"], "127.0.0.1", ["127.0.0.1:7071"]),
        # Behind a proxy on its own machine all callers seem to be there.
        (PUBLIC, ["127.0.0.1:22"], "127.0.0.1", []),
        (HOME, ["169.254.169.254:80"], "10.0.0.9", []),
        (PUBLIC, ["[::1]:7071", "[2606:4700::1]:1"], "2606:4700::2", ["[2606:4700::1]:1"]),
        (HERE, ["database.internal:5432"], "127.0.0.1", []),
        (PUBLIC, ["8.8.8.8:70000"], "127.0.0.1", []),
        (HERE, ["127.0.0.1:7071"], "", []),
        (PUBLIC, ["8.8.8.8:1", "8.8.8.8:2", "8.8.8.8:3"], "1.1.1.1", ["8.8.8.8:1", "8.8.8.8:2"]),
    ],
)
def test_which_addresses_are_called(tracker: DialPolicy, addresses: list[str], source: str, called: list[str]):
    assert [str(way) for way in worth_calling(make_row(ADA, addresses=addresses), source, tracker)] == called


def test_a_place_is_looked_at_once():
    first_probes = FirstProbes()
    row = make_row(ADA)
    assert first_probes.wanted(row, 0.0)
    assert not first_probes.wanted(row, 1.0)
    assert first_probes.reached(row) is None
    first_probes.found(row, True)
    assert first_probes.reached(make_row(ADA, sequence=2)) is True
    moved = make_row(ADA, sequence=3, addresses=["127.0.0.1:7072"])
    assert first_probes.reached(moved) is None
    assert first_probes.wanted(moved, 2.0)


def test_what_was_found_is_looked_at_again_after_a_while_and_holds_meanwhile():
    first_probes, row = FirstProbes(), make_row(ADA)
    assert first_probes.wanted(row, 100.0)
    first_probes.found(row, False)
    assert not first_probes.wanted(row, 100.0 + LOOK_AGAIN_S - 1)
    assert first_probes.wanted(row, 100.0 + LOOK_AGAIN_S)
    assert first_probes.reached(row) is False
    first_probes.found(row, True)
    assert first_probes.reached(row) is True
    assert not first_probes.wanted(row, 100.0 + LOOK_AGAIN_S + 1)


def test_relays_are_asked_by_the_same_rule_as_addresses():
    pin = "#" + "a" * 52
    relays = [f"https://10.0.0.1:7070{pin}", f"https://8.8.8.8:7070{pin}"]
    row = make_row(ADA, addresses=["9.9.9.9:7071"], relays=relays, dialable=False)
    assert [str(way) for way in worth_asking(row, "1.1.1.1", HOME)] == ["relay 8.8.8.8:7070"]
    assert [str(way) for way in worth_asking(row, "10.0.0.9", PUBLIC)] == ["relay 8.8.8.8:7070"]
    assert [str(way) for way in worth_asking(row, "10.0.0.9", HOME)] == ["relay 10.0.0.1:7070", "relay 8.8.8.8:7070"]


def test_only_so_many_looks_a_second():
    first_probes = FirstProbes()
    rows = [make_row(ADA, peer=key_of(f"peer {number}").peer_id) for number in range(int(2 * BURST))]
    assert sum(first_probes.wanted(row, 1.0) for row in rows) == BURST
    assert sum(first_probes.wanted(row, 2.0) for row in rows) == LOOKS_A_SECOND


def test_who_was_looked_at_first_is_forgotten_first():
    first_probes = FirstProbes(most=1)
    first_probes.found(make_row(ADA), True)
    first_probes.found(make_row(BEN), False)
    assert first_probes.reached(make_row(ADA)) is None
    assert first_probes.reached(make_row(BEN)) is False
