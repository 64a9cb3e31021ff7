"""What a capture makes of packets."""

from __future__ import annotations

import struct

from tests.lab.capture import Flows, records_of

HELLO = b"\x16\x03\x01\x00\x03abc"
DATA = b"\x17\x03\x03\x00\x02xy"


def packet(sequence: int, payload: bytes = b"", flags: int = 16, port: int = 7070) -> bytes:
    tcp = struct.pack("!HHIIBBHHH", 50_000, port, sequence, 0, 5 << 4, flags, 0, 0, 0) + payload
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, b"\x0a\x4d\x00\x01", b"\x0a\x4d\x00\x02")
    return ip + tcp


def test_a_flow_is_put_together_whatever_came_twice_or_too_early():
    flows = Flows(7070)
    whole = HELLO + DATA
    flows.take(packet(2**32 - 1, flags=2))
    flows.take(packet(0, whole[:4]))
    flows.take(packet(6, whole[6:]))
    flows.take(packet(0, whole[:4]))
    flows.take(packet(2, whole[2:10]))
    flows.take(packet(6, whole[6:]))
    flows.take(packet(0, b"GET / HTTP/1.1", port=80))
    flows.take(b"\x60" + bytes(60))
    assert flows.told() == [{"bytes": len(whole), "records": {"handshake": 1, "data": 1}, "not_tls": ""}]


def test_what_is_no_tls_is_named():
    found = records_of(HELLO + b"GET / HTTP/1.1\r\n")
    assert found["records"] == {"handshake": 1}
    assert bytes.fromhex(str(found["not_tls"])) == b"GET / HTTP/1.1\r\n"
