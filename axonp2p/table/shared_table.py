"""FIND, from a client's side: trackers first, the DHT after a moment, one table out of all that they say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.logs import get_logger
from axonp2p.supervision import cancel_and_wait, one_look
from axonp2p.table.dht_source import DhtSource
from axonp2p.table.records import Row
from axonp2p.table.sightings import DHT, Sight
from axonp2p.table.table_question import Question, TableQuestion
from axonp2p.table.tracker_client import dht_contacts, known_trackers
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.address import join_host_port, split_host_port
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.ways import direct_ways

log = get_logger(__name__)


class SharedTable:
    """The table that several trackers and the DHT hold. `close()` it at the end."""

    def __init__(self, trackers: TrackerLines, dht: DhtSource | None, dials: DialPolicy, clock: Clock) -> None:
        self.trackers = trackers
        self.dht = dht
        self.dials = dials
        """Which of the addresses that rows name may be dialled from here."""
        self._clock = clock
        self._learning: asyncio.Task[None] | None = None

    async def find(self, need: Mapping[str, Any], count: int, *, enough: int, near: bytes = b"") -> Sight:
        """Peers that meet `need` (a `peers.capability.Need` as a map), about `count` of them.

        Sources are asked until `enough` peers are seen, or all have said what they know; near ones come first when
        the coordinate `near` is given. When nobody shows a peer and no tracker answers, raises `TrackerUnreachable`
        naming each source with its reason, or the refusal of a tracker.
        """
        asking = TableQuestion(Question(need, count, enough, near), self.trackers, self.dht, self._clock)
        sight = await asking.run()
        if not sight.rows and all(answer.source == DHT for answer in sight.heard):
            raise asking.error
        self._learn(sight)
        return sight

    async def survey(self, need: Mapping[str, Any], count: int) -> Sight:
        """Ask every source and wait for all of them, a bounded while. Raises as `find` when no source answers."""
        question = Question(need, count, enough=count + 1, at_once=True)
        knew_nodes = self.dht is None or bool(self.dht.known)
        sight = await self._survey(question)
        if not knew_nodes and self.dht and self.dht.known:
            # The trackers' rows name DHT nodes: now it can be asked as well. Trackers have said what they know.
            answers = [answer for answer in sight.answers if answer.source != DHT]
            return await TableQuestion(question, self.trackers, self.dht, self._clock, answers).run()
        return sight

    async def _survey(self, question: Question) -> Sight:
        asking = TableQuestion(question, self.trackers, self.dht, self._clock)
        sight = await asking.run()
        if not sight.heard:
            raise asking.error
        self._learn(sight)
        return sight

    async def close(self) -> None:
        """Close every line and the DHT's node. A later question opens them again."""
        await cancel_and_wait(self._learning)
        await self.trackers.close()
        if self.dht:
            await self.dht.close()

    # --- what answers teach, for the day when no tracker lives ---

    def _learn(self, sight: Sight) -> None:
        rows = [seen.row for seen in sight.rows]
        self.trackers.learn(tracker for row in rows for tracker in row.trackers)
        if self.dht:
            self.dht.know(contact for row in rows for contact in dht_contacts_of(row, self.dials))
        told = {answer.source for answer in sight.heard}
        line = next((line for line in self.trackers.in_order() if line.called in told), None)
        if line and self._learning is None:  # once is enough: rows tell the rest
            self._learning = asyncio.create_task(self._learn_from(line), name="learning of trackers and DHT nodes")

    async def _learn_from(self, line: HttpCaller) -> None:
        try:
            with one_look("learning of trackers and DHT nodes"):
                self.trackers.heard(line, await known_trackers(line, now=self._clock.now()))
                if self.dht:
                    told = await dht_contacts(line)
                    self.dht.know(one for one in told if self.dials.allows(split_host_port(one)[0]))
        except AxonError as error:
            log.debug("nothing learnt", tracker=line.called, reason=error.message)


def dht_contacts_of(row: Row, dials: DialPolicy) -> list[str]:
    """HOST:PORT (UDP) of a peer's DHT node; empty when others cannot reach it, or it may not be called from here."""
    if not row.dht:
        return []
    return [join_host_port(way.address.host, row.dht) for way in direct_ways(row, dials)]
