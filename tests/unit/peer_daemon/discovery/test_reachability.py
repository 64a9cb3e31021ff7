from __future__ import annotations

import pytest

from peer_daemon.announcing.own_row import OwnRow, lasting_row
from peer_daemon.discovery.reachability import Reachability
from peer_daemon.lending.lending import Lending
from tests.fakes import key_of, make_offer


class FakeNode:
    """What is looked at of a node."""

    def __init__(self):
        self.serves = False
        self.own_address_seen: str | None = None


@pytest.fixture
def node():
    return FakeNode()


@pytest.fixture
def own():
    row = OwnRow(
        lasting_row(key_of("peer").peer_id, "otter", b"c" * 32, issues_tokens=True), Lending(make_offer()), "0.0.0.0"
    )
    row.port = 7071
    return row


@pytest.fixture
def standing(own, node):
    standing = Reachability(own, node, lambda: ["192.0.2.7", "127.0.0.1"])
    standing.port = 7072
    return standing


def test_who_knows_nothing_serves_nobody(standing, own, node):
    assert standing.look() is False
    assert (node.serves, own.dht, own.addresses) == (False, 0, [])


def test_seen_under_an_address_of_its_own_it_serves(standing, own, node):
    node.own_address_seen = "192.0.2.7:7072"
    assert standing.look() is True
    assert (node.serves, own.dht, own.addresses) == (True, 7072, ["192.0.2.7:7071"])
    assert standing.look() is False


@pytest.mark.parametrize("seen", ["198.51.100.1:7072", "192.0.2.7:50000", "nonsense"])
def test_behind_a_router_it_only_asks(standing, own, node, seen):
    node.own_address_seen = seen
    standing.look()
    assert (node.serves, own.dht) == (False, 0)


def test_a_trackers_word_counts_more_and_a_yes_more_than_a_no(standing, own, node):
    node.own_address_seen = "192.0.2.7:7072"
    standing.reached("a", False, trusted=True)
    standing.look()
    assert not node.serves
    standing.reached("b", True, trusted=True)
    assert standing.look() is True
    assert node.serves
    standing.reached("b", None, trusted=True)  # it has not tried again: what it said holds
    standing.look()
    assert node.serves
    standing.forget("b")
    assert standing.look() is True
    assert (node.serves, own.dht) == (False, 0)
    standing.forget("a")
    standing.look()
    assert node.serves


def test_what_trackers_found_stands_in_the_row(own):
    standing = Reachability(own, None, list)
    assert standing.look() is False
    assert (own.dialable, standing.needs_relay) == (None, False)
    standing.reached("a", False, trusted=True)
    assert standing.look() is True
    assert (own.dialable, standing.needs_relay) == (False, True)
    standing.reached("b", True, trusted=True)  # from another place
    assert standing.look() is True
    assert (own.dialable, standing.needs_relay) == (True, True)
    standing.reached("a", True, trusted=True)
    assert (standing.look(), standing.needs_relay) == (False, False)


def test_only_who_can_be_dialled_is_a_relay_for_others(own):
    standing = Reachability(own, None, list, carries=True)
    standing.look()
    assert not own.carries
    standing.reached("a", True, trusted=True)
    assert standing.look() is True
    assert own.carries
    standing.reached("a", False, trusted=True)
    standing.look()
    assert not own.carries


def test_peers_are_believed_while_no_tracker_has_tried(own):
    standing = Reachability(own, None, list)
    standing.told_by_peers({"a": False, "b": True})
    assert (standing.word, standing.needs_relay, standing.trackers_tell) == (True, True, False)
    standing.told_by_peers({"c": False})
    assert (standing.word, standing.needs_relay) == (False, True)
    standing.reached("tracker", True, trusted=True)
    assert (standing.word, standing.needs_relay, standing.trackers_tell) == (True, False, True)
