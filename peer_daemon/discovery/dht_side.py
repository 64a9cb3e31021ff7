"""The daemon's part in the DHT: find a way in, keep the row there, remember whom it met."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, PortTaken, SettingsError
from axonp2p.identity.keys import PrivateKey
from axonp2p.logs import get_logger
from axonp2p.table.dht.node import DhtNode
from axonp2p.table.dht.records.compact import CompactRow, sign_compact
from axonp2p.table.dht.routing.node_state import SavedContact, load_state, save_state
from axonp2p.transport.address import join_host_port, split_host_port

log = get_logger(__name__)

MOST_OFFERED = 200
ASKED_AT_ONCE = 20
FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0
SAVE_EVERY_S = 600.0
REPLICAS = 8
"""A row that fewer nodes hold is put again once there are twice as many contacts."""
_WITHDRAW_WITHIN_S = 3.0


class DhtSide:
    """One supervised task, `run`. `met` is called when others were met: they may see this peer from elsewhere."""

    def __init__(
        self,
        node: DhtNode,
        key: PrivateKey,
        state: Path,
        clock: Clock,
        chance: random.Random,
        met: Callable[[], Awaitable[None]],
    ) -> None:
        self.node = node
        self._key = key
        self._state = state
        self._clock = clock
        self._chance = chance
        self._met = met
        self._offered: dict[str, None] = {}
        self._tried: set[str] = set()
        self._wanted: CompactRow | None = None
        self._published: CompactRow | None = None
        self._published_among = 0
        self.holders = 0
        """How many nodes hold the row."""
        self._failures = 0
        self._not_before = 0.0
        self._saved_at = clock.monotonic()
        self._news = asyncio.Event()

    async def listen(self, host: str, port: int) -> int:
        """Open the UDP port, or a free one when another program has it; which one. Raises `SettingsError`."""
        saved = await asyncio.to_thread(load_state, self._state, self._clock.now())
        self.offer(contact.address for contact in saved)
        try:
            return await self.node.listen(host, port)
        except PortTaken:
            free = await self.node.listen(host, 0)
            log.warning("another program has the UDP port", port=port, dht_port=free)
            return free

    def offer(self, contacts: Iterable[str]) -> None:
        """Somebody says that there are DHT nodes at these HOST:PORT; the newest word counts most."""
        contacts = list(contacts)
        self._offered = dict.fromkeys([*contacts, *self._offered][:MOST_OFFERED])
        if not self._tried.issuperset(contacts):
            self._not_before = 0.0
            self.wake()

    def tell(self, row: CompactRow | None) -> None:
        """This is the newest row; None while nobody could call this peer."""
        self._wanted = row
        self.wake()

    def wake(self) -> None:
        """Something has changed."""
        self._news.set()

    def noticed(self) -> None:
        """A node has answered: while few are known, it may be one that was not known before."""
        if self.node.contact_count < REPLICAS:
            self.wake()

    @property
    def is_lonely(self) -> bool:
        """Whether no node answers it."""
        return not self.node.contact_count

    @property
    def is_the_first(self) -> bool:
        """Whether it knows of nobody: others come to this one."""
        return not self._offered and not self.node.contact_count

    async def run(self) -> None:
        """Join, publish and remember until cancelled."""
        while True:
            self._news.clear()
            if self._clock.monotonic() >= self._not_before:
                done = await self._join() and await self._publish()
                self._failures = 0 if done else self._failures + 1
                self._not_before = self._clock.monotonic() + (0 if done else self._pause())
            await self._met()
            if self._clock.monotonic() - self._saved_at >= SAVE_EVERY_S:
                await self._save()
            await self._sleep()

    async def withdraw(self, row: CompactRow | None) -> None:
        """Put the row that takes the last one back in its place; gives up after a few seconds."""
        if row is None or self._published is None:
            return
        try:
            async with asyncio.timeout(_WITHDRAW_WITHIN_S):
                holders = await self.node.publish(sign_compact(self._key, row))
            log.info("withdrawn from the DHT", holders=holders)
        except (AxonError, TimeoutError) as error:
            log.warning("not withdrawn from the DHT", reason=str(error) or "no answer in time")

    async def stop(self) -> None:
        """Remember whom it met, and close the port."""
        await self._save()
        await self.node.stop()

    async def _join(self) -> bool:
        """Ask nodes that were named since the last time, or all when nobody is known; whether anybody is."""
        if not self.node.contact_count:
            self._tried.clear()
        fresh = [contact for contact in self._offered if contact not in self._tried]
        if not fresh:
            return True
        asked = fresh if len(fresh) <= ASKED_AT_ONCE else self._chance.sample(fresh, ASKED_AT_ONCE)
        self._tried.update(fresh)
        first = not self.node.contact_count
        known = await self.node.bootstrap([address for one in asked for address in await _resolved(one)])
        if first and known:
            log.info("in the DHT", contacts=known)
        return known > 0

    async def _publish(self) -> bool:
        """Put the row into the DHT when it is time; whether nothing is left to do."""
        row, now = self._wanted, self._clock.now()
        contacts = self.node.contact_count
        few = self.holders < REPLICAS and contacts > 2 * self._published_among
        # One that nobody has met yet holds its own row, when others may ask it.
        somewhere = contacts or self.node.serves
        if row is None or not somewhere or not (few or is_due(row, self._published, now)):
            return True
        try:
            self.holders = await self.node.publish(sign_compact(self._key, row))
        except AxonError as error:
            log.warning("not published in the DHT", reason=error.in_a_line)
            return False
        if not self.holders:
            return False
        if self._published is None:
            log.info("published in the DHT", holders=self.holders)
        self._published, self._published_among = row, contacts
        return True

    def _pause(self) -> float:
        wait = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(self._failures - 1, 10))
        return wait * (0.75 + self._chance.random() / 2)

    async def _sleep(self) -> None:
        now = self._clock.monotonic()
        until = self._not_before if self._failures else self._saved_at + SAVE_EVERY_S
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until - now)):
                await self._news.wait()

    async def _save(self) -> None:
        now = self._clock.now()
        met = [SavedContact(address, now) for address in self.node.contacts(MOST_OFFERED)]
        self._saved_at = self._clock.monotonic()
        if not met:
            return  # whom the last run knew may be there again
        try:
            await asyncio.to_thread(save_state, self._state, met)
        except OSError as error:
            log.warning("DHT contacts not kept", path=str(self._state), reason=error.strerror)


def is_due(row: CompactRow, published: CompactRow | None, now: float) -> bool:
    """Whether the newest row is to replace the one that was published: it says something else, or lives much longer."""
    if published is None:
        return True
    if msgspec.structs.replace(row, sequence=0, expires=0) != msgspec.structs.replace(published, sequence=0, expires=0):
        return True
    return published.expires - now <= 0.55 * (row.expires - now)


async def _resolved(contact: str) -> list[str]:
    """HOST:PORT with IP addresses for a name that a person wrote; nothing when it is not known."""
    try:
        host, port = split_host_port(contact)
        found = await asyncio.get_running_loop().getaddrinfo(host, port)
    except (SettingsError, OSError, UnicodeError):
        return []
    return list(dict.fromkeys(join_host_port(str(address[0]), port) for *_, address in found))
