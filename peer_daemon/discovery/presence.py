"""The parts that speak with trackers, DHT nodes and the local network, and the news that they pass to each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from axonp2p.clock import Clock
from axonp2p.files import write_whole
from axonp2p.logs import get_logger
from axonp2p.table.dht.lan import LanPeer
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.relay.choice import RelayCandidate
from axonp2p.transport.relay.server import RelayServer
from peer_daemon.announcing.announcer import Announcer
from peer_daemon.announcing.row_sender import Given
from peer_daemon.announcing.row_writer import RowWriter, Written
from peer_daemon.control.status import Carried, NetworkNow, TrackerNow
from peer_daemon.discovery.dht_side import DhtSide
from peer_daemon.discovery.lan_side import LanSide
from peer_daemon.discovery.reachability import Reachability
from peer_daemon.discovery.tracker_news import TrackerNews
from peer_daemon.earnings.log_looker import LogLooker
from peer_daemon.earnings.receipts_courier import ReceiptsCourier
from peer_daemon.lending.leases import Leases
from peer_daemon.reachability.dial_back import DialBackAsker
from peer_daemon.reachability.port_mapping import PortMapping
from peer_daemon.reachability.relay_side import RelaySide

log = get_logger(__name__)


class _Runs(Protocol):
    async def run(self) -> None: ...


@dataclass
class Parts:
    """Those that hear of each other through `Presence`; each of them is made with one of its methods."""

    announcer: Announcer
    courier: ReceiptsCourier
    looker: LogLooker
    news: TrackerNews
    dht: DhtSide | None = None
    reachability: Reachability | None = None
    lan: LanSide | None = None
    relays: RelaySide | None = None
    asker: DialBackAsker | None = None
    mapping: PortMapping | None = None
    carrying: RelayServer | None = None
    """There when the owner lets it be a relay."""

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """The work of each of them for as long as the peer runs, by a name for people."""
        parts: dict[str, _Runs | None] = {
            "the announcer": self.announcer,
            "handing in receipts": self.courier,
            "the look at logs": self.looker,
            "the DHT": self.dht,
            "the local network": self.lan,
            "registering with relays": self.relays,
            "asking others to dial back": self.asker,
            "the router's port": self.mapping,
            "relaying": self.carrying,
        }
        return {name: part.run for name, part in parts.items() if part}


class Presence:
    """Passes on what is heard. `parts` is set before any of them begins."""

    parts: Parts

    def __init__(self, ready: Path, rows: RowWriter, leases: Leases, health: TrackerHealth, clock: Clock) -> None:
        """`ready` is the file that is there while others can find this peer."""
        self._ready = ready
        self._rows = rows
        self._leases = leases
        self._health = health
        self._clock = clock
        self._written_ready = b""
        self._configured = any(not health.is_learnt(address) for address in health.addresses)

    def slots_changed(self) -> asyncio.Event:
        """A lease began or ended. The event is set when the trackers know."""
        self._rows.own.free = self._leases.free(self._clock.now())
        self._rows.own.gpus = self._leases.gpus_told(self._clock.now())
        self.parts.courier.nudge()
        return self.parts.announcer.changed()

    def written(self, written: Written) -> None:
        """There is a new row."""
        if self.parts.dht:
            self.parts.dht.tell(written.compact)
        self._tell_lan()

    def network(self) -> NetworkNow:
        """How this peer is to be found, for its owner."""
        parts, health = self.parts, self._health
        told = [address for address in parts.announcer.told if not health.is_away(address)]
        word = parts.reachability.word if parts.reachability else None
        held = bool(told) or bool(parts.dht and parts.dht.holders)
        return NetworkNow(
            reachable="unknown" if word is None else "yes" if word else "no",
            address=next(iter(self._rows.own.addresses), "") if held else "",
            trackers=[self._tracker(address, answers=address in told) for address in health.addresses],
            dht_nodes=parts.dht.node.contact_count if parts.dht else 0,
            router=parts.mapping.state if parts.mapping else "",
            carried=self._carried(),
            relays=[PinnedAddress.parse(relay).host_port for relay in self._rows.own.relays],
        )

    def _tracker(self, address: str, *, answers: bool) -> TrackerNow:
        trouble = "" if answers else self.parts.announcer.trouble(address)
        return TrackerNow(address=address.partition("#")[0], answers=answers, trouble=trouble)

    def _carried(self) -> Carried | None:
        if self.parts.carrying is None:
            return None
        books = self.parts.carrying.admission
        return Carried(
            on=self._rows.own.carries, peers=books.peers, streams=len(books.streams), bytes=books.totals.bytes
        )

    async def announced(self, line: HttpCaller, given: Given) -> None:
        """A tracker has the row."""
        self.parts.courier.nudge()
        if self.parts.reachability:
            address = str(line.address)
            self.parts.reachability.reached(address, given.answer.reached, trusted=not self._health.is_learnt(address))
            self._look()
        await self._say_ready()
        news, dht = self.parts.news, self.parts.dht
        lonely = dht is not None and dht.is_lonely
        if news.is_due(str(line.address), given.news, lonely=lonely) and await news.hear(line, given.news):
            self.parts.announcer.woken()

    def tracker_lost(self, address: str) -> None:
        """A tracker does not answer any more."""
        self._rows.own.forget(address)
        if self.parts.reachability:
            self.parts.reachability.forget(address)
            self._look()

    async def met(self) -> None:
        """DHT nodes were met, or the row was published there."""
        self._look()
        dht = self.parts.dht
        if dht and (dht.holders or (dht.is_the_first and not self._health.addresses)):
            await self._say_ready()

    def heard_on_lan(self, found: LanPeer) -> None:
        """There is another peer on the local network."""
        if self.parts.dht:
            self.parts.dht.offer(found.contacts)
        # Anybody on the network can say what they like: only who has no tracker from its owner listens.
        if not self._configured:
            learnt = [one for one in found.trackers if self._health.learn(one, self._clock.now())]
            if learnt:
                log.info("trackers learnt", told_by=found.name, trackers=len(learnt))
                self.parts.announcer.woken()

    def told_by_peers(self, said: dict[str, bool]) -> None:
        """Other peers were asked to call this one."""
        if self.parts.reachability:
            self.parts.reachability.told_by_peers(said)
            self._look()

    def relays_changed(self) -> None:
        """The row names other relays."""
        self.parts.announcer.others_say()

    def _look(self) -> None:
        reachability, relays = self.parts.reachability, self.parts.relays
        if reachability and reachability.look():
            self.parts.announcer.others_say()
        if reachability and self.parts.asker:
            self.parts.asker.trackers_tell = reachability.trackers_tell
        if reachability and relays:
            relays.say(self._trackers_as_relays(), needed=reachability.needs_relay)

    def _trackers_as_relays(self) -> list[RelayCandidate]:
        """The trusted trackers that live, and can be told by their certificate."""
        health, found = self._health, []
        for address in health.addresses:
            pinned, tracker = PinnedAddress.parse(address), health.state(address).tracker
            if tracker and pinned.fingerprint and not health.is_away(address) and not health.is_learnt(address):
                found.append(RelayCandidate(str(pinned), tracker, f"tracker {pinned.host_port}"))
        return found

    def _tell_lan(self) -> None:
        newest = self._rows.newest
        if self.parts.lan and newest:
            self.parts.lan.say(list(newest.row.trackers))

    async def _say_ready(self) -> None:
        addresses = self._rows.own.addresses
        newest = self._rows.newest
        if not addresses or newest is None:
            return
        text = f"{newest.row.peer} {addresses[0]}\n".encode()
        if text == self._written_ready:
            return
        try:
            await asyncio.to_thread(write_whole, self._ready, text)
            self._written_ready = text
        except OSError as error:
            log.warning("cannot write the ready file", reason=error.strerror)
