"""Two halves of the internet on one machine: network namespaces that a router between them joins, or cuts apart.

Every host is an address inside one of the halves. A cut is silent, as on the internet: packets go nowhere, and nobody
is told. Needs root and the `ip` command; `why_not` says what is missing.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from contextlib import suppress
from types import TracebackType
from typing import Self

HALVES = ("left", "right")
MOST_HOSTS = 200


def why_not() -> str:
    """Why no network namespaces can be had here; empty when they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "the ip command is missing (apt install iproute2)"
    name = f"axon-{secrets.token_hex(3)}"
    made = _run("ip", "netns", "add", name, check=False)
    if made.returncode != 0:
        return f"this machine makes no network namespaces: {made.stderr.strip()}"
    forwarding = _run("ip", "netns", "exec", name, "sh", "-c", _forward(True), check=False)
    _run("ip", "netns", "delete", name)
    return "" if forwarding.returncode == 0 else f"a router cannot be made here: {forwarding.stderr.strip()}"


class Network:
    """`with` it: both halves are there, joined, and gone afterwards."""

    def __init__(self) -> None:
        self._name = f"axon-{secrets.token_hex(3)}"
        self._router = f"{self._name}-router"

    def __enter__(self) -> Self:
        try:
            _run("ip", "netns", "add", self._router)
            for number, half in enumerate(HALVES, 1):
                self._make_half(half, number)
            self.heal()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def host(self, half: str, number: int) -> str:
        """An address in that half, of which each has many."""
        return f"10.91.{HALVES.index(half) + 1}.{number + 10}"

    def inside(self, half: str) -> list[str]:
        """What stands before a command line that runs in that half."""
        return ["ip", "netns", "exec", f"{self._name}-{half}"]

    def cut(self) -> None:
        """From now on nothing gets from one half to the other."""
        _run("ip", "netns", "exec", self._router, "sh", "-c", _forward(False))

    def heal(self) -> None:
        """The halves reach each other again."""
        _run("ip", "netns", "exec", self._router, "sh", "-c", _forward(True))

    def switch_off(self, half: str) -> None:
        """All machines of that half lose their power: their processes are killed, and the half is gone."""
        name = f"{self._name}-{half}"
        for pid in _run("ip", "netns", "pids", name).stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        _run("ip", "netns", "delete", name)

    def _make_half(self, half: str, number: int) -> None:
        name, net = f"{self._name}-{half}", f"10.91.{number}"
        _run("ip", "netns", "add", name)
        _run("ip", "-n", self._router, "link", "add", half, "type", "veth", "peer", "name", "wan", "netns", name)
        hosts = [f"addr add {net}.{host + 10}/24 dev wan" for host in range(MOST_HOSTS)]
        _batch(self._router, [f"addr add {net}.1/24 dev {half}", f"link set {half} up"])
        _batch(name, ["link set lo up", *hosts, "link set wan up", f"route add default via {net}.1"])

    def _remove(self) -> None:
        for name in (*(f"{self._name}-{half}" for half in HALVES), self._router):
            _run("ip", "netns", "delete", name, check=False)


def _forward(on: bool) -> str:
    return f"echo {int(on)} > /proc/sys/net/ipv4/ip_forward"


def _batch(namespace: str, lines: list[str]) -> None:
    subprocess.run(
        ["ip", "-n", namespace, "-batch", "-"], input="\n".join(lines), text=True, capture_output=True, check=True
    )


def _run(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=check, timeout=30)
