"""The internet between the sites, as a program: one TUN a site, and every packet is held until it is due.

It stands in for tc netem, which not every kernel has. The first line that it reads is its `Setup`; each line after that
calls a method of `Weather` by name, and is answered with a line when it is done. It ends with its input, so it does not
outlive who started it.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import Any

import msgspec

from tests.lab.weather import Weather

LINE = "wan0"
"""The name of a site's line to the internet, inside the site."""

_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_TUN_WITHOUT_HEADER = 0x0001 | 0x1000
_MOST_HELD = 20_000
_AT_A_TIME = 64
"""Packets read from one site before the next one has its turn."""
_DESTINATION = slice(16, 20)


class Setup(msgspec.Struct, frozen=True):
    """Sites by number: their namespaces, their addresses, and the one-way delays between them in seconds."""

    namespaces: list[str]
    addresses: list[str]
    delays: list[list[float]]


class Order(msgspec.Struct, frozen=True):
    """Call this method of `Weather`."""

    do: str
    values: list[Any]


class Relay:
    """Carries packets until nobody gives orders any more."""

    def __init__(self, setup: Setup) -> None:
        self._weather = Weather(setup.delays, random.Random(1))
        self._sites = {socket.inet_aton(address): site for site, address in enumerate(setup.addresses)}
        self._lines = _open_lines(setup.namespaces)
        self._held: list[tuple[float, int, int, bytes]] = []
        self._count = 0

    def run(self) -> None:
        """Until the input ends."""
        orders = sys.stdin.fileno()
        poll = select.epoll()
        poll.register(orders, select.EPOLLIN)
        site_of = {line: site for site, line in enumerate(self._lines)}
        for line in self._lines:
            poll.register(line, select.EPOLLIN)
        print("ready", flush=True)
        while True:
            wait = self._held[0][0] - time.monotonic() if self._held else 1.0
            if wait > 0:
                select.select(
                    [poll.fileno()], [], [], wait
                )  # to the microsecond; epoll's own waits are whole milliseconds
            for ready, _ in poll.poll(0):
                if ready != orders:
                    self._take(site_of[ready], ready)
                elif not self._obey(sys.stdin.readline()):
                    return
            self._deliver()

    def _take(self, sender: int, line: int) -> None:
        now = time.monotonic()
        for _ in range(_AT_A_TIME):
            try:
                packet = os.read(line, 65536)
            except OSError:  # nothing left, or the line is down
                return
            receiver = self._sites.get(packet[_DESTINATION])
            if receiver is None or len(self._held) >= _MOST_HELD:
                continue
            due = self._weather.arrival(sender, receiver, now)
            if due is not None:
                self._count += 1
                heapq.heappush(self._held, (due, self._count, receiver, packet))

    def _deliver(self) -> None:
        now = time.monotonic()
        while self._held and self._held[0][0] <= now:
            _, _, receiver, packet = heapq.heappop(self._held)
            with suppress(OSError):  # its line is down, or full: a packet that is lost
                os.write(self._lines[receiver], packet)

    def _obey(self, line: str) -> bool:
        if not line:
            return False
        order = msgspec.json.decode(line, type=Order)
        getattr(self._weather, order.do)(*order.values)
        print("done", flush=True)
        return True


def _open_lines(namespaces: list[str]) -> list[int]:
    libc = ctypes.CDLL(None, use_errno=True)
    lines = []
    for name in namespaces:
        with open(f"/run/netns/{name}") as namespace:
            if libc.setns(namespace.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"cannot enter {name}")
        line = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(line, _TUNSETIFF, struct.pack("16sH22x", LINE.encode(), _TUN_WITHOUT_HEADER))
        lines.append(line)
    return lines


def main() -> None:
    """Punctual even on a busy machine, where that is allowed."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    Relay(msgspec.json.decode(sys.stdin.readline(), type=Setup)).run()


if __name__ == "__main__":
    main()
