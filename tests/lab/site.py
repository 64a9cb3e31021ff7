"""One site of the laboratory: a line with rates, a host behind it, and perhaps a home router between the two."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from tests.lab import kernel
from tests.lab.relay import LINE

Nat = Literal["", "cone", "symmetric"]
"""cone: one inner port keeps its outer port, wherever it sends to; symmetric: a new one for each. Neither lets in
what nobody inside has called."""

_BURST_S = 0.004
_LEAST_BURST = 3000
_QUEUE = "100ms"
"""What a line holds before it drops packets, as homes' routers do."""
_MASQUERADE = {"cone": "masquerade", "symmetric": "masquerade random,fully-random"}
_HOME = "192.168.1"


@dataclass(frozen=True)
class Host:
    """What a site is to be. Rates in Mbit/s; None: as fast as the machine."""

    up: float | None = None
    down: float | None = None
    nat: Nat = ""


@dataclass(frozen=True)
class Traffic:
    """Bytes on a line since it was made, headers of IP and above included."""

    sent: int
    received: int


class Site:
    """Its namespaces, by names that begin with `name`. The line itself is the relay's, which makes it."""

    def __init__(self, name: str, address: str, host: Host, mtu: int) -> None:
        self.name = f"{name}-host"
        self.edge = f"{name}-edge" if host.nat else self.name
        self.address = address
        self._host = host
        self._mtu = mtu

    def build(self) -> None:
        """Before there is a line."""
        for name in {self.name, self.edge}:
            kernel.run("ip", "netns", "add", name)
            kernel.links(name, "link set lo up")
        if self._host.nat:
            self._build_home(_MASQUERADE[self._host.nat])

    def connect(self) -> None:
        """Now that there is one."""
        kernel.links(
            self.edge, f"addr add {self.address}/32 dev {LINE}", f"link set {LINE} mtu {self._mtu} txqueuelen 1000"
        )
        self.plug()
        self.set_rates(self._host.up, self._host.down)

    def plug(self) -> None:
        """The line is up."""
        # The kernel forgets the routes of a line that goes down.
        kernel.links(self.edge, f"link set {LINE} up", f"route replace default dev {LINE}")

    def unplug(self) -> None:
        """The line is down, and everybody at the site sees that it is."""
        kernel.links(self.edge, f"link set {LINE} down")

    def set_rates(self, up: float | None, down: float | None) -> None:
        """Mbit/s from now on; None: no limit."""
        for device, rate in ((LINE, up), ("ifb0", down)):
            if device == "ifb0" and rate is not None:
                self._divert()
            with suppress(subprocess.CalledProcessError):  # there was no limit
                kernel.run("tc", "-n", self.edge, "qdisc", "delete", "dev", device, "root")
            if rate is not None:
                burst = max(_LEAST_BURST, 2 * self._mtu, int(rate * 1e6 / 8 * _BURST_S))
                limit = ["rate", f"{rate}mbit", "burst", str(burst), "latency", _QUEUE]
                kernel.run("tc", "-n", self.edge, "qdisc", "add", "dev", device, "root", "tbf", *limit)

    def traffic(self) -> Traffic:
        """Of the line."""
        return traffic(self.edge, LINE)

    def _divert(self) -> None:
        # What comes in cannot be queued where it comes in, so it takes a detour over a device where it goes out.
        tc = ["tc", "-n", self.edge]
        with suppress(subprocess.CalledProcessError):  # it is there already
            kernel.links(self.edge, "link add ifb0 type ifb", "link set ifb0 up txqueuelen 1000")
            kernel.run(*tc, "qdisc", "add", "dev", LINE, "ingress")
            every = ["filter", "add", "dev", LINE, "parent", "ffff:", "protocol", "ip", "u32", "match", "u32", "0", "0"]
            kernel.run(*tc, *every, "action", "mirred", "egress", "redirect", "dev", "ifb0")

    def _build_home(self, masquerade: str) -> None:
        link = f"link add home type veth peer name eth0 netns {self.name}"
        kernel.links(self.edge, link, f"addr add {_HOME}.1/24 dev home", "link set home up")
        up = ["link set eth0 up", f"route add default via {_HOME}.1"]
        kernel.links(self.name, f"addr add {_HOME}.2/24 dev eth0", *up)
        kernel.run(*kernel.inside(self.edge), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        rules = f"""
            table ip home {{
                chain out {{ type nat hook postrouting priority 100; oifname "{LINE}" {masquerade}; }}
                chain through {{ type filter hook forward priority 0; iifname "{LINE}" ct state new drop; }}
                chain in {{ type filter hook input priority 0; iifname "{LINE}" ct state new drop; }}
            }}"""
        kernel.run(*kernel.inside(self.edge), "nft", "-f", "-", feed=rules)


def traffic(namespace: str, device: str) -> Traffic:
    """What the kernel counted on a device."""
    shown = json.loads(kernel.run("ip", "-n", namespace, "-s", "-j", "link", "show", "dev", device))
    counted = shown[0]["stats64"]
    return Traffic(counted["tx"]["bytes"], counted["rx"]["bytes"])
