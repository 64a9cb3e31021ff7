"""How much other programs send and receive: the counters of the network cards, less those of our own connections.

The workers have no network; all of theirs goes through the daemon's sockets, and the kernel counts each one's bytes.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

_ACKED_AND_RECEIVED = struct.Struct("=120xQQ")
"""tcp_info: bytes that the other side has acknowledged, and bytes received."""
_HEADERS = 1.05
"""The bytes that go over the card for each byte of ours, about."""


class OthersTraffic:
    """From one look to the next."""

    def __init__(self, root: Path) -> None:
        self._counters = root / "proc/net/dev"
        self._cards = root / "sys/class/net"
        self._last: tuple[float, int] | None = None
        self._sockets: dict[int, int] = {}

    def look(self, now: float) -> float | None:
        """Mbit/s since the last look, both ways together; None at first, and where there are no counters."""
        try:
            whole = self._card_bytes()
        except OSError:
            return None
        sockets = own_sockets()
        ours = sum(max(0, count - self._sockets.get(name, 0)) for name, count in sockets.items())
        last, self._last, self._sockets = self._last, (now, whole), sockets
        if last is None or now <= last[0]:
            return None
        return max(0.0, whole - last[1] - _HEADERS * ours) * 8e-6 / (now - last[0])

    def _card_bytes(self) -> int:
        """Received and sent by real cards: what a bridge or a tunnel carries goes through one of them as well."""
        every, real = 0, 0
        for line in self._counters.read_text().splitlines()[2:]:
            name, _, numbers = line.partition(":")
            fields = numbers.split()
            count = int(fields[0]) + int(fields[8])
            if name.strip() != "lo":
                every += count
                real += count if (self._cards / name.strip() / "device").exists() else 0
        return real or every


def own_sockets() -> dict[int, int]:
    """Bytes sent and received so far by each of this process's TCP connections, by the number of its socket."""
    found = {}
    for entry in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{entry}")
            if not target.startswith("socket:["):
                continue
            with socket.socket(fileno=os.dup(int(entry))) as copy:
                # Calls between two programs of this machine, as its tests make them, go through no card.
                if copy.family not in (socket.AF_INET, socket.AF_INET6) or copy.getpeername()[0] in _HERE:
                    continue
                information = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKED_AND_RECEIVED.size)
            found[int(target[8:-1])] = sum(_ACKED_AND_RECEIVED.unpack(information))
        except (OSError, struct.error):
            continue  # closed meanwhile, not connected, or not TCP
    return found


_HERE = frozenset({"127.0.0.1", "::1", "::ffff:127.0.0.1"})
