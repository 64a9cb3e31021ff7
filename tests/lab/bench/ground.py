"""Where members run: each on a line of its own in the laboratory, or all side by side on bare loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.lab.bench.settings import Lines
from tests.lab.laboratory import Laboratory
from tests.lab.relay import LINE
from tests.lab.site import Host, traffic


@dataclass(frozen=True)
class Ground:
    """Members from 0 on, after them a server, whose line has no limit, and a client, whose line is like a member's."""

    lab: Laboratory
    members: int
    bare: bool

    @property
    def server(self) -> int:
        """Its number."""
        return self.members

    @property
    def client(self) -> int:
        """Its number."""
        return self.members + 1

    @property
    def device(self) -> str:
        """The one that all bytes of a member pass."""
        return "lo" if self.bare else LINE

    def address(self, number: int) -> str:
        """On loopback everybody has the same."""
        return "127.0.0.1" if self.bare else self.lab.address(number)

    def inside(self, number: int) -> list[str]:
        """What stands before a command line of this member."""
        return self.lab.inside(0 if self.bare else number)

    def passed(self) -> int:
        """Bytes that have passed all members' lines, out or in."""
        edges = [self.lab.namespace(0)] if self.bare else [self.lab.namespace(member) for member in range(self.members)]
        counted = [traffic(edge, self.device) for edge in edges]
        return sum(one.sent + one.received for one in counted)


@contextmanager
def on_lines(lines: Lines, members: int, *, mtu: int = 1500) -> Iterator[Ground]:
    """Each member on its own line."""
    hosts = [Host(*lines.of(member, members)) for member in range(members)]
    with Laboratory([*hosts, Host(), Host(lines.up, lines.down)], lines.rtt_ms, mtu=mtu) as lab:
        yield Ground(lab, members, bare=False)


@contextmanager
def on_loopback(members: int) -> Iterator[Ground]:
    """All in one namespace, which has nothing but loopback."""
    with Laboratory([Host()]) as lab:
        yield Ground(lab, members, bare=True)
