from __future__ import annotations

from tracker.own_address import elsewhere, reachable_host


def test_a_listener_on_every_address_tells_one_that_others_can_dial():
    assert reachable_host("192.0.2.1") == "192.0.2.1"
    assert reachable_host("0.0.0.0") not in ("", "0.0.0.0")
    assert ":" in reachable_host("::")


def test_without_a_way_out_the_machines_own_address_is_found() -> None:
    assert elsewhere(["127.0.0.1", "169.254.3.4", "10.77.0.1", "192.0.2.1"]) == "10.77.0.1"
    assert elsewhere(["::1", "fe80::1%eth0", "2001:db8::7"]) == "2001:db8::7"
    assert elsewhere(["127.0.0.1"]) == ""
