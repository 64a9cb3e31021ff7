"""Nobody dials for a stranger: which addresses that others name are dialled, by whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.transport.dial_policy import NOT_REACHED, DialPolicy, may_dial

PUBLIC, HOME, HERE = ["8.8.8.8"], ["192.168.1.5"], ["127.0.0.1"]


@pytest.mark.parametrize(
    ("host", "known_by", "allowed"),
    [
        ("1.1.1.1", PUBLIC, True),
        ("1.1.1.1", HOME, True),
        ("1.1.1.1", [], True),
        ("2606:4700::1", PUBLIC, True),
        # A home network is nobody's to point at, but for those who are in it themselves.
        ("192.168.1.1", PUBLIC, False),
        ("192.168.1.1", HOME, True),
        ("192.168.1.1", [*PUBLIC, *HOME], True),
        ("10.0.0.1", HOME, False),
        ("10.1.2.3", ["10.1.200.7"], True),
        ("10.2.2.3", ["10.1.200.7"], False),
        ("100.64.3.1", ["100.64.9.9"], True),
        ("100.64.3.1", PUBLIC, False),
        ("fd00:1:2::1", ["fd00:1:2:3::9"], True),
        ("fd00:1:2::1", ["fd00:9:2:3::9"], False),
        # This computer itself, only where the whole swarm is on it.
        ("127.0.0.1", HERE, True),
        ("127.0.0.7", HERE, True),
        ("::1", HERE, True),
        ("127.0.0.1", PUBLIC, False),
        ("127.0.0.1", HOME, False),
        ("127.0.0.1", [*HERE, *PUBLIC], False),
        ("127.0.0.1", [], False),
        ("127.0.0.1", ["localhost"], False),
        # Never: link-local (a cloud's metadata service), multicast, unspecified, reserved, names.
        ("169.254.169.254", ["169.254.169.1"], False),
        ("fe80::1", ["fe80::2"], False),
        ("fe80::1%eth0", ["fe80::2%eth0"], False),
        ("224.0.1.1", PUBLIC, False),
        ("ff02::1", PUBLIC, False),
        ("0.0.0.0", HERE, False),
        ("::", HERE, False),
        ("240.0.0.1", PUBLIC, False),
        ("255.255.255.255", PUBLIC, False),
        ("localhost", HERE, False),
        ("router.lan", HOME, False),
        ("", HERE, False),
        # IPv4 in IPv6's clothes is IPv4.
        ("::ffff:127.0.0.1", PUBLIC, False),
        ("::ffff:192.168.1.1", HOME, True),
        ("64:ff9b::7f00:1", PUBLIC, False),
        ("64:ff9b::c0a8:101", PUBLIC, False),
        ("64:ff9b::101:101", PUBLIC, True),
        ("2002:7f00:1::", PUBLIC, False),
        ("2002:c0a8:101::", PUBLIC, False),
        ("2001:0:1::1", PUBLIC, False),
    ],
)
def test_who_may_dial_what(host: str, known_by: list[str], allowed: bool) -> None:
    assert may_dial(host, known_by) is allowed


@given(st.ip_addresses().map(str))
def test_a_program_that_is_known_publicly_dials_nothing_but_global_addresses(host: str) -> None:
    if may_dial(host, PUBLIC):
        assert may_dial(host, [])


def test_a_policy_asks_anew_by_which_addresses_the_program_is_known() -> None:
    known = ["192.168.1.5"]
    policy = DialPolicy(lambda: known)
    assert policy.allows("192.168.1.9")
    known[:] = ["8.8.8.8"]
    assert not policy.allows("192.168.1.9")


def test_only_the_owner_hears_why_a_dial_failed() -> None:
    assert DialPolicy(list).told("connection refused") == "connection refused"
    assert DialPolicy(list, tells_why=False).told("connection refused") == NOT_REACHED
