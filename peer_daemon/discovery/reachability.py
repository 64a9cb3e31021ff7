"""Where others see this peer, and whether they reach it: what trackers and DHT nodes say goes into row and node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from axonp2p.errors import SettingsError
from axonp2p.transport.address import split_host_port
from peer_daemon.announcing.own_row import OwnRow


class ReachabilityNode(Protocol):
    """As much of `table.dht.node.DhtNode` as is looked at here."""

    serves: bool

    @property
    def own_address_seen(self) -> str | None:
        """HOST:PORT as most others see the node."""
        ...


class Reachability:
    """One peer's. `hosts` gives the addresses of this machine's own interfaces."""

    def __init__(
        self, own: OwnRow, node: ReachabilityNode | None, hosts: Callable[[], list[str]], *, carries: bool = False
    ) -> None:
        """`node` is None when the peer takes no part in the DHT; `carries`: the owner lets it be a relay."""
        self.port = 0
        """The UDP port of the node, once it listens."""
        self._own = own
        self._node = node
        self._hosts = hosts
        self._carries = carries
        self._reached: dict[str, bool] = {}
        self._learnt_said: dict[str, bool] = {}
        self._peers_said: dict[str, bool] = {}

    def reached(self, tracker: str, reached: bool | None, *, trusted: bool) -> None:
        """A tracker could call this peer, or could not; None when it has not tried."""
        if reached is not None:
            (self._reached if trusted else self._learnt_said)[tracker] = reached

    @property
    def trackers_tell(self) -> bool:
        """Whether some trusted tracker has tried: peers' words, and those of learnt trackers, count while none has."""
        return bool(self._reached)

    def told_by_peers(self, said: dict[str, bool]) -> None:
        """Other peers could call this peer, or could not; what others said before is forgotten."""
        self._peers_said = dict(said)

    def forget(self, tracker: str) -> None:
        """This tracker has gone: what it said may not hold any more."""
        self._reached.pop(tracker, None)
        self._learnt_said.pop(tracker, None)

    @property
    def word(self) -> bool | None:
        """Whether some trusted tracker (anybody, while none has tried) could call this peer; None: nobody has tried."""
        said = self._said
        return any(said.values()) if said else None

    @property
    def needs_relay(self) -> bool:
        """Whether somebody could not call this peer: others in the same place cannot either."""
        return not all(self._said.values())

    @property
    def _said(self) -> dict[str, bool]:
        return self._reached or {**self._learnt_said, **self._peers_said}

    def look(self) -> bool:
        """Put what is known now into the row and the node; whether the row says something else."""
        own, word = self._own, self.word
        carries = self._carries and word is True
        changed = (own.dialable, own.carries) != (word, carries)
        own.dialable, own.carries = word, carries
        if self._node is not None:
            changed |= self._look_at(self._node, word)
        return changed

    def _look_at(self, node: ReachabilityNode, word: bool | None) -> bool:
        own, seen = self._own, node.own_address_seen
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


def should_serve(reached: bool | None, seen: str | None, own_hosts: Iterable[str], own_port: int) -> bool:
    """A tracker's word counts; without one, whether others see this node under an address and port of its own.

    `reached` is a tracker's `Announced.reached`, `seen` is `DhtNode.own_address_seen`. A node behind a router that
    rewrites addresses sees another host or port, and only asks: whom it asked can answer, but nobody else reach it.
    """
    if reached is not None:
        return reached
    if seen is None:
        return False
    try:
        host, port = split_host_port(seen)
    except SettingsError:
        return False
    return port == own_port and host in set(own_hosts)
