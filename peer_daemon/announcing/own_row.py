"""The row in which this peer describes itself, and the IP addresses at which others see it and may reach it (pure).

The addresses in the row are dialled by everybody who wants this peer, so no stranger decides it alone. A trusted
tracker's word counts, and that of a learnt one when the address is one of this machine's own. Of other addresses two
learnt trackers of different networks must say the same, and they count only while no trusted one says anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import msgspec

from axonp2p.errors import SettingsError
from axonp2p.identity.peer_id import PeerId, public_key_of
from axonp2p.table.dht.records.compact import (
    CARRIES,
    ISSUES_TOKENS,
    NOT_DIALABLE,
    OFFERS_WORK,
    CompactRow,
    pack_addresses,
    pack_relays,
)
from axonp2p.table.dht.records.index_keys import environment_tags
from axonp2p.table.records import Row
from axonp2p.table.tracker_standing import network_of
from axonp2p.transport.address import join_host_port, plain_address, split_host_port
from axonp2p.transport.dial_policy import is_address
from axonp2p.transport.messages import MOST_RELAYS
from axonp2p.wire.schema import IN_ROWS, SCHEMAS
from peer_daemon.lending.lending import Lending
from peer_daemon.lending.offer import fit

MOST_ADDRESSES = 4
MOST_TRACKERS_NAMED = 2
_WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104 (compared with, not bound to)


class OwnRow:
    """The row's lasting part; what changes is set before it is written."""

    def __init__(self, lasting: Row, lending: Lending, host: str) -> None:
        """`lasting` is a row with what stays the same (`lasting_row`); `host` is where the peer listens."""
        self._lasting = lasting
        self._lending = lending
        self.free = lending.offer.free
        """Slots that nobody holds now."""
        self.gpus = lending.offer.gpus
        """The cards that jobs may have, those that are taken as such."""
        self.dht = 0
        """UDP port of the DHT node; 0 while others cannot reach it."""
        self.port = 0
        """Where it listens, once it does."""
        self.dialable: bool | None = None
        """Whether others could dial it; None while nobody has tried."""
        self.relays: list[str] = []
        """The relays that hold a connection of it: https://HOST:PORT#FINGERPRINT."""
        self.carries = False
        """Whether it is a relay for others."""
        self.listens_at(host)
        self.own_hosts: Callable[[], Collection[str]] = tuple
        """The addresses of this machine's interfaces."""
        self._seen = SeenAddresses()
        self._seen_by_nodes = ""

    @property
    def name(self) -> str:
        """The name that people see."""
        return self._lasting.name

    def listens_at(self, host: str) -> None:
        """Where the peer listens: rows name the IP address, since nobody resolves a name for a stranger."""
        self._told = "" if host in _WILDCARDS else host

    @property
    def listens_everywhere(self) -> bool:
        """Whether it listens on every address of its machine."""
        return not self._told

    @property
    def addresses(self) -> list[str]:
        """HOST:PORT, by which others reach this peer; none is known before the first tracker or DHT node answered."""
        hosts = [self._told] if self._told else self._seen.hosts or [self._seen_by_nodes]
        return [join_host_port(host, self.port) for host in hosts[:MOST_ADDRESSES] if host]

    def hosts(self) -> list[str]:
        """The IP addresses by which others know this peer."""
        return [split_host_port(address)[0] for address in self.addresses]

    def seen(self, tracker: str, address: str, *, trusted: bool) -> bool:
        """That tracker saw an announce come from this IP. True when the row says something else now.

        It counts only when the peer listens everywhere: who listens on one address is reached there.
        `SeenAddresses` says whose word counts.
        """
        before = self.addresses
        if host := _plain(address):
            own = () if trusted or self._told else self.own_hosts()
            self._seen.heard(tracker, host, trusted=trusted, own_hosts=own)
        return self.addresses != before

    def seen_by_nodes(self, address: str) -> bool:
        """Most DHT nodes see this IP; it counts while no tracker says otherwise. True when the row changes."""
        before = self.addresses
        self._seen_by_nodes = _plain(address) or self._seen_by_nodes
        return self.addresses != before

    def forget(self, tracker: str) -> None:
        """This tracker has gone: the machine may have moved since, if others say so."""
        if self._seen_by_nodes or self._seen.says_something_without(tracker):
            self._seen.forget(tracker)

    def offering(self, *, sequence: int, expires: int, trackers: Sequence[str] = (), coordinate: bytes = b"") -> Row:
        """The row that lends, until `expires` (Unix seconds); `trackers` have it, `coordinate` says where it stands."""
        row = msgspec.structs.replace(
            self._lasting,
            sequence=sequence,
            expires=expires,
            addresses=self.addresses,
            dht=self.dht,
            coordinate=coordinate,
            trackers=list(trackers[:MOST_TRACKERS_NAMED]),
            dialable=self.dialable,
            relays=self.relays[:MOST_RELAYS],
            carries=self.carries,
        )
        return fit(row, msgspec.structs.replace(self._lending.offer, free=self.free, gpus=self.gpus))

    def withdrawing(self, *, sequence: int, expires: int) -> Row:
        """The row that lends nothing any more; `expires` is when every older row has expired."""
        return msgspec.structs.replace(self._lasting, sequence=sequence, expires=expires)

    def compact(self, row: Row) -> CompactRow | None:
        """`row`, which lends, as the DHT holds it; None while no address is known: nobody could call this peer."""
        packed = pack_addresses(row.addresses)
        if not packed:
            return None
        # Whether a slot is free at the moment the peer tells who asks it: that would be put anew with every job, and
        # whether the owner is back many times a day.
        offer = self._lending.lasting
        flags = (0 if offer.refuses else OFFERS_WORK) | (ISSUES_TOKENS if row.issues_tokens else 0)
        flags |= (NOT_DIALABLE if row.dialable is False else 0) | (CARRIES if row.carries else 0)
        return CompactRow(
            public_key=public_key_of(row.peer),
            packed_addresses=packed,
            dht=row.dht,
            certificate=row.certificate,
            sequence=row.sequence,
            expires=row.expires,
            cores=offer.cores,
            memory_mb=min(offer.memory_mb, 2**32 - 1),
            gpu_memory_mb=min(max((gpu.memory_mb for gpu in offer.gpus), default=0), 2**32 - 1),
            tags=environment_tags(offer.packages),
            flags=flags,
            packed_relays=pack_relays(row.relays),
        )


def lasting_row(peer: PeerId, name: str, certificate: bytes, *, issues_tokens: bool) -> Row:
    """The part of a peer's rows that stays the same for as long as it runs."""
    return Row(
        peer=peer,
        name=name,
        sequence=0,
        addresses=[],
        certificate=certificate,
        expires=0,
        capability=None,
        issues_tokens=issues_tokens,
        schema=SCHEMAS[IN_ROWS],
    )


def _plain(address: str) -> str:
    """An IP address in its usual spelling; empty when it is none."""
    return plain_address(address) if is_address(address) else ""


MOST_TRACKERS_HEARD = 64
AGREEING = 2


@dataclass(frozen=True)
class _Word:
    host: str
    counts: bool
    """Whether it needs nobody else's."""


class SeenAddresses:
    """The IP addresses at which trackers see this peer, by the trackers' own addresses."""

    def __init__(self) -> None:
        self._words: dict[str, _Word] = {}

    def heard(self, tracker: str, host: str, *, trusted: bool, own_hosts: Collection[str] = ()) -> None:
        """That tracker saw this peer at the IP address `host`; `own_hosts` are those of the machine's interfaces."""
        self._words[tracker] = _Word(host, trusted or host in own_hosts)
        if len(self._words) > MOST_TRACKERS_HEARD:
            del self._words[next(iter(self._words))]

    def forget(self, tracker: str) -> None:
        """Its word counts no more."""
        self._words.pop(tracker, None)

    def says_something_without(self, tracker: str) -> bool:
        """Whether another tracker has a word on it."""
        return bool(set(self._words) - {tracker})

    @property
    def hosts(self) -> list[str]:
        """Those that go into the row."""
        sure = [word.host for word in self._words.values() if word.counts]
        if sure:
            return list(dict.fromkeys(sure))
        voices: dict[str, set[str]] = {}
        for tracker, word in self._words.items():
            voices.setdefault(word.host, set()).add(_network(tracker))
        return [host for host, networks in voices.items() if len(networks) >= AGREEING]


def _network(tracker: str) -> str:
    try:
        return network_of(tracker)
    except SettingsError:
        return ""
