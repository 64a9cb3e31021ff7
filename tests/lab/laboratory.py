"""Hosts on lines like those of homes, all on one machine: rates, delays, routers with NAT, losses, cuts.

    with Laboratory([Host(up=20, down=100), Host(nat="cone")], rtt_ms=80) as lab:
        lab.run(1, "curl", f"http://{lab.address(0)}/")
        lab.cut(0, 1)

Every site is a network namespace (two where there is a router); a relay of our own joins them. All of it can change
while programs run. Needs root and Debian's iproute2 and nftables; `kernel.why_not` says what is missing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from tests.lab import kernel
from tests.lab.claim import Claim
from tests.lab.relay import Order, Setup
from tests.lab.site import Host, Site, Traffic

ROOT = Path(__file__).parent.parent.parent
_SITES_A_NET = 250


class Laboratory:
    """`with` it: everything is there, and gone afterwards. Hosts go by their number, from 0."""

    def __init__(
        self, hosts: Sequence[Host], rtt_ms: float | Callable[[int, int], float] = 0.0, *, mtu: int = 1500
    ) -> None:
        """`rtt_ms`: of all pairs, or a pair's."""
        rtt = rtt_ms if callable(rtt_ms) else lambda _one, _other: float(rtt_ms)
        numbers = range(len(hosts))
        self._delays = [[0.0 if a == b else rtt(min(a, b), max(a, b)) / 2000 for b in numbers] for a in numbers]
        self._hosts = hosts
        self._mtu = mtu
        self._sites: list[Site] = []
        self._started: list[subprocess.Popen[Any]] = []

    def __enter__(self) -> Self:
        self._claim = Claim()
        try:
            for number, host in enumerate(self._hosts):
                address = f"10.77.{number // _SITES_A_NET}.{number % _SITES_A_NET + 1}"
                self._sites.append(Site(f"{self._claim.name}-{number}", address, host, self._mtu))
                self._sites[-1].build()
            self._start_relay()
            for site in self._sites:
                site.connect()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def address(self, host: int) -> str:
        """By which the others reach it: a router's, if it stands behind one."""
        return self._sites[host].address

    def namespace(self, host: int) -> str:
        """Where its programs run."""
        return self._sites[host].name

    def inside(self, host: int) -> list[str]:
        """What stands before a command line that runs there."""
        return kernel.inside(self.namespace(host))

    def run(self, host: int, *words: str, timeout: float = 60) -> str:
        """What a program prints there. Raises `CalledProcessError` and `TimeoutExpired`."""
        command = [*self.inside(host), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=timeout, cwd=ROOT).stdout

    def start(self, host: int, *words: str) -> IO[str]:
        """A program there, until the end at most; gives its output."""
        command = [*self.inside(host), *words]
        started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self._started.append(started)
        assert started.stdout is not None
        return started.stdout

    def traffic(self, host: int) -> Traffic:
        """On its line, since the beginning."""
        return self._sites[host].traffic()

    def set_rates(self, host: int, *, up: float | None, down: float | None) -> None:
        """Mbit/s from now on; None: no limit."""
        self._sites[host].set_rates(up, down)

    def set_rtt(self, one: int, other: int, milliseconds: float) -> None:
        """Between these two, from now on."""
        self._order("set_delay", one, other, milliseconds / 2000)

    def lose(self, host: int, share: float) -> None:
        """Of all that it sends, and of all that it is sent."""
        self._order("set_loss", host, share)

    def cut(self, sender: int, receiver: int, *, one_way: bool = False) -> None:
        """Nothing passes between these two, and nobody is told."""
        self._order("cut", sender, receiver)
        if not one_way:
            self._order("cut", receiver, sender)

    def mend(self, one: int, other: int) -> None:
        """Everything passes between these two."""
        self._order("mend", one, other)
        self._order("mend", other, one)

    def partition(self, *groups: Sequence[int]) -> None:
        """Only within a group does anything pass; this replaces all cuts there were."""
        self._order("partition", groups)

    def heal(self) -> None:
        """No cut is left."""
        self._order("heal")

    def unplug(self, host: int) -> None:
        """Its line is down, as its own kernel sees."""
        self._sites[host].unplug()

    def plug(self, host: int) -> None:
        """Its line is up again."""
        self._sites[host].plug()

    def _start_relay(self) -> None:
        pipe = subprocess.PIPE
        words = [sys.executable, "-m", "tests.lab.relay"]
        self._relay = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, cwd=ROOT)
        self._started.append(self._relay)
        edges = [site.edge for site in self._sites]
        self._tell(Setup(edges, [site.address for site in self._sites], self._delays), "ready")

    def _order(self, do: str, *values: Any) -> None:
        self._tell(Order(do, list(values)), "done")

    def _tell(self, line: Setup | Order, wanted: str) -> None:
        assert self._relay.stdin is not None
        assert self._relay.stdout is not None
        self._relay.stdin.write(msgspec.json.encode(line).decode() + "\n")
        self._relay.stdin.flush()
        answer = self._relay.stdout.readline().strip()
        if answer != wanted:
            raise RuntimeError(f"the relay of the laboratory did not do it: {line}: {answer or 'it has ended'}")

    def _remove(self) -> None:
        for started in self._started:
            started.kill()
            started.wait()
            for pipe in (started.stdin, started.stdout):
                if pipe is not None:
                    pipe.close()
        self._claim.give_up()
