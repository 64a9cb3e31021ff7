"""Captures TCP on a line of the laboratory, and tells what each flow began with.

python -m tests.lab.capture DEVICE PORT FILE     writes FILE until it is told to stop by SIGTERM; prints "ready" first
"""

from __future__ import annotations

import json
import signal
import socket
import struct
import sys
from pathlib import Path

_ALL = 0x0003
_MOST_OF_FLOW = 400_000
_TCP = 6
_RECORDS = {20: "change cipher", 21: "alert", 22: "handshake", 23: "data"}


class Flows:
    """Each direction of each connection, put together by sequence numbers."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._first: dict[tuple[bytes, bytes], int] = {}
        self._came: dict[tuple[bytes, bytes], bytearray] = {}

    def take(self, packet: bytes) -> None:
        """One IPv4 packet; what is no TCP of that port is left out."""
        if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != _TCP:
            return
        head = (packet[0] & 15) * 4
        source, target, sequence = struct.unpack_from("!HHI", packet, head)
        if self._port not in (source, target):
            return
        flow = (packet[12:16] + packet[head : head + 2], packet[16:20] + packet[head + 2 : head + 4])
        total = struct.unpack_from("!H", packet, 2)[0]
        payload = packet[head + (packet[head + 12] >> 4) * 4 : total]
        if packet[head + 13] & 2:  # SYN
            self._first[flow], self._came[flow] = (sequence + 1) % 2**32, bytearray()
        elif flow in self._first and payload:
            self._put(flow, (sequence - self._first[flow]) % 2**32, payload)

    def _put(self, flow: tuple[bytes, bytes], at: int, payload: bytes) -> None:
        came = self._came[flow]
        # Only what follows without a gap: a segment that was lost before us is sent again.
        if at <= len(came) < at + len(payload) and len(came) < _MOST_OF_FLOW:
            came += payload[len(came) - at :]

    def told(self) -> list[dict[str, object]]:
        """For each flow: bytes, TLS records by kind, and what is none."""
        return [records_of(bytes(came)) for came in self._came.values() if came]


def records_of(came: bytes) -> dict[str, object]:
    """What a flow consists of, as far as it is TLS records (RFC 8446, 5.1)."""
    kinds: dict[str, int] = {}
    at = 0
    while at + 5 <= len(came):
        kind, version, size = struct.unpack_from("!BHH", came, at)
        if kind not in _RECORDS or version not in (0x0301, 0x0303) or size > 2**14 + 256:
            return {"bytes": len(came), "records": kinds, "not_tls": came[at : at + 40].hex()}
        kinds[_RECORDS[kind]] = kinds.get(_RECORDS[kind], 0) + 1
        at += 5 + size
    return {"bytes": len(came), "records": kinds, "not_tls": ""}


def main() -> None:
    device, port, file = sys.argv[1:]
    flows = Flows(int(port))
    line = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL))
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 * 2**20)
    line.bind((device, _ALL))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    print("ready", flush=True)
    try:
        while True:
            flows.take(line.recv(65536))
    finally:
        Path(file).write_text(json.dumps(flows.told()))


if __name__ == "__main__":
    main()
