"""Contacts: what is no node's address is refused, what is packed comes back."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage
from axonp2p.table.dht.routing.contact import Contact, is_local, network_of, read_contacts

ID = bytes(range(20))
hosts = st.ip_addresses().filter(
    lambda ip: (
        not (ip.is_multicast or ip.is_unspecified)
        and str(ip) != "255.255.255.255"
        and not getattr(ip, "ipv4_mapped", None)
    )
)


@given(st.binary(min_size=20, max_size=20), hosts, st.integers(1, 65535))
def test_packed_and_back(contact_id: bytes, host: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> None:
    contact = Contact(contact_id, str(host), port)
    packed = contact.pack()
    assert len(packed) == (26 if host.version == 4 else 38)
    assert Contact.unpack(packed) == contact
    assert contact.address == (str(host), port)


@pytest.mark.parametrize("port", [0, -1, 65536, 70000])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    with pytest.raises(MalformedMessage):
        Contact(ID, "8.8.8.8", port)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "localhost", "", "8.8.8"])
def test_a_host_that_is_no_machine_is_refused(host: str) -> None:
    with pytest.raises(MalformedMessage):
        Contact(ID, host, 7071)


def test_an_id_of_another_length_is_refused() -> None:
    with pytest.raises(MalformedMessage):
        Contact(bytes(21), "8.8.8.8", 7071)


def test_an_ipv4_address_has_one_spelling() -> None:
    assert Contact(ID, "::ffff:8.8.8.8", 7071).host == "8.8.8.8"
    assert Contact.unpack(ID + bytes(10) + b"\xff\xff\x08\x08\x08\x08" + b"\x1b\x9f").host == "8.8.8.8"


def test_networks() -> None:
    assert network_of("8.8.4.1") == network_of("8.8.4.200") != network_of("8.8.5.1")
    assert network_of("2001:4860:1::1") == network_of("2001:4860:1:ffff::2") != network_of("2001:4860:2::1")
    assert is_local("127.0.0.1")
    assert is_local("192.168.1.5")
    assert is_local("fe80::1%eth0")
    assert not is_local("8.8.8.8")


def test_what_is_no_contact_in_an_answer_is_dropped() -> None:
    good = Contact(ID, "8.8.8.8", 7071)
    port_0 = good.pack()[:-2] + bytes(2)
    assert read_contacts([good.pack(), port_0, 7, "text", None, b"short", [good.pack()]], "9.9.9.9", 20) == [good]
    assert read_contacts({"a": 1}, "9.9.9.9", 20) == []
    assert read_contacts([good.pack()] * 50, "9.9.9.9", 20) == [good] * 20


def test_a_stranger_cannot_point_into_our_network() -> None:
    router = Contact(ID, "192.168.1.1", 53)
    assert read_contacts([router.pack()], "9.9.9.9", 20) == []
    assert read_contacts([router.pack()], "192.168.1.7", 20) == [router]


@given(st.lists(st.none() | st.integers() | st.binary(max_size=40) | st.text(max_size=3), max_size=30))
def test_whatever_an_answer_holds_reading_it_never_raises(values: list[object]) -> None:
    for contact in read_contacts(values, "9.9.9.9", 20):
        assert 0 < contact.port < 65536
