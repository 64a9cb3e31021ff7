"""Newcomers are given DHT nodes that do not all stand in one room."""

from __future__ import annotations

from typing import Any

from axonp2p.table.records import MOST_CONTACTS, Row
from tests.fakes import key_of, make_row
from tracker.table.dht_bootstrap import contacts_of


def row(*addresses: str, dht: int = 7071, **changes: Any) -> Row:
    return make_row(key_of("ada"), addresses=list(addresses), dht=dht, **changes)


def test_one_of_each_network_comes_first() -> None:
    rows = [row("198.51.100.1:1"), row("198.51.7.2:1"), row("203.0.113.5:1"), row("[2001:db8::1]:1", dht=9)]
    assert contacts_of(rows) == ["198.51.100.1:7071", "203.0.113.5:7071", "[2001:db8::1]:9", "198.51.7.2:7071"]


def test_whoever_has_no_node_or_no_literal_address_is_left_out() -> None:
    assert contacts_of([row("198.51.100.1:1", dht=0), row("lab.local:1"), row(), row("198.51.100.1:70000")]) == []


def test_no_node_is_named_twice_and_not_too_many() -> None:
    assert contacts_of([row("198.51.100.1:1"), row("198.51.100.1:2")]) == ["198.51.100.1:7071"]
    assert len(contacts_of(row(f"198.51.100.{number}:1") for number in range(100))) == MOST_CONTACTS
