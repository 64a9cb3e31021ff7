"""Whose word on this peer's own address counts."""

from __future__ import annotations

from peer_daemon.announcing.own_row import MOST_TRACKERS_HEARD, SeenAddresses

OURS, VICTIM = "192.0.2.7", "203.0.113.9"
A, B, C = (f"https://10.{number}.0.1:7070" for number in (1, 2, 3))
NEAR_A = "https://10.1.9.9:7070"


def test_a_trusted_tracker_is_believed_alone():
    seen = SeenAddresses()
    seen.heard(A, OURS, trusted=True)
    seen.heard(B, "2001:db8::1", trusted=True)
    assert seen.hosts == [OURS, "2001:db8::1"]


def test_a_learnt_one_adds_no_address_to_the_row_alone_nor_with_its_neighbour():
    seen = SeenAddresses()
    seen.heard(A, VICTIM, trusted=False)
    assert seen.hosts == []
    seen.heard(NEAR_A, VICTIM, trusted=False)
    assert seen.hosts == []
    seen.heard(B, OURS, trusted=True)
    assert seen.hosts == [OURS]
    seen.heard(C, VICTIM, trusted=False)
    assert seen.hosts == [OURS]


def test_where_no_trusted_one_is_known_two_of_different_networks_agree():
    seen = SeenAddresses()
    seen.heard(A, OURS, trusted=False)
    seen.heard(B, OURS, trusted=False)
    assert seen.hosts == [OURS]
    seen.forget(B)
    assert seen.hosts == []


def test_an_address_of_this_machine_needs_no_second_word():
    seen = SeenAddresses()
    seen.heard(A, OURS, trusted=False, own_hosts=["127.0.0.1", OURS])
    seen.heard(B, VICTIM, trusted=False, own_hosts=["127.0.0.1", OURS])
    assert seen.hosts == [OURS]


def test_words_are_bounded():
    seen = SeenAddresses()
    for number in range(1000):
        seen.heard(f"https://10.{number % 250}.{number // 250}.1:1", OURS, trusted=False)
    assert len(seen._words) == MOST_TRACKERS_HEARD
