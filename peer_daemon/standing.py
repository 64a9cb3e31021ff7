"""Where others see this peer, and whether they reach it: what trackers and DHT nodes say goes into row and node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from axonp2p.errors import SettingsError
from axonp2p.table.dht.reachability import should_serve
from axonp2p.transport.address import split_host_port
from peer_daemon.own_row import OwnRow


class Seen(Protocol):
    """As much of `table.dht.node.DhtNode` as is looked at here."""

    serves: bool

    @property
    def own_address_seen(self) -> str | None:
        """HOST:PORT as most others see the node."""
        ...


class Standing:
    """One peer's. `hosts` gives the addresses of this machine's own interfaces."""

    def __init__(self, own: OwnRow, node: Seen, hosts: Callable[[], list[str]]) -> None:
        self.port = 0
        """The UDP port of the node, once it listens."""
        self._own = own
        self._node = node
        self._hosts = hosts
        self._reached: dict[str, bool] = {}

    def reached(self, tracker: str, reached: bool | None) -> None:
        """A tracker could call this peer, or could not; None when it has not tried."""
        if reached is not None:
            self._reached[tracker] = reached

    def forget(self, tracker: str) -> None:
        """This tracker has gone: what it said may not hold any more."""
        self._reached.pop(tracker, None)

    @property
    def word(self) -> bool | None:
        """Whether some tracker could call this peer; None while none has tried."""
        return any(self._reached.values()) if self._reached else None

    def look(self) -> bool:
        """Put what is known now into the row and the node; whether the row says something else."""
        own, node, word = self._own, self._node, self.word
        seen = node.own_address_seen
        changed = bool(seen) and own.seen_by_nodes(_host_of(seen or ""))
        node.serves = should_serve(word, seen, self._hosts(), self.port)
        port = self.port if node.serves else 0
        changed |= own.dht != port
        own.dht = port
        return changed


def _host_of(address: str) -> str:
    try:
        return split_host_port(address)[0]
    except SettingsError:
        return ""
