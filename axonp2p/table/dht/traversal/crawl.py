"""A look-up under way: asks whom `lookup.Lookup` names, and tells it what happened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from axonp2p.table.dht.routing.contact import Contact, read_contacts
from axonp2p.table.dht.routing.lookup import WIDTH, Lookup
from axonp2p.table.dht.rpc.pending_rpcs import RpcEnded
from axonp2p.table.dht.rpc.protocol import DhtProtocol
from axonp2p.table.dht.rpc.rpc import MOST_CONTACTS, Find, FindAnswer

SEEDS = 20
MOST_QUESTIONS = 160
"""A sound walk among a million nodes takes about thirty, sixty when half of them are dead. Liars could name others
for ever."""
NODES_SIZE = 100
"""Bytes of a question for contacts alone: three times as much holds eight of them."""
RECORDS_SIZE = 410
"""Bytes of a question for records too: three times as much is a full page."""

Heard = Callable[[Contact, FindAnswer], None]


class Crawl:
    """One look-up in the network. Ends by itself, or when `stop` is called."""

    def __init__(
        self,
        protocol: DhtProtocol,
        target: bytes,
        start: Callable[[], bytes] | None,
        heard: Heard,
        heard_late: Heard | None = None,
        further: int = 0,
    ) -> None:
        """`start` gives a place in the set for each question when records are wanted too; `heard` gets each answer,
        `heard_late` those that come when the walk has ended. So many `further` nodes are asked after that."""
        self._protocol = protocol
        self._target = target
        self._start = start
        self._heard = heard
        self._heard_late = heard_late
        table = protocol.router
        table.touch(target, asyncio.get_running_loop().time())
        known = table.nearest(target, SEEDS)
        # When all of them rest, it is rather this machine that was away.
        seeds = [contact for contact in known if protocol.usable(contact)] or known
        self._lookup = Lookup(target, seeds, own_id=protocol.source_node.id)
        self._further = further
        self._over = False
        self._asked = 0
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> list[Contact]:
        """Walk to the end; the nearest nodes that answered, nearest first: eight, perhaps some of the further ones."""
        self._go_on()
        try:
            await self._end
        except asyncio.CancelledError:
            self.stop()
            raise
        return self._lookup.nearest

    def stop(self) -> None:
        """No further questions: what was wanted is there."""
        self._over = True
        if not self._end.done():
            self._end.set_result(None)

    def _go_on(self) -> None:
        if self._over:
            return
        # A node that is slow for another look-up takes no place here, so that there may be more to ask at once.
        while contacts := self._lookup.next():
            for contact in contacts:
                self._ask(contact)
        if self._asked >= MOST_QUESTIONS or (self._lookup.done and not self._further):
            self.stop()
        elif self._lookup.done:
            # The caller that waits for the nearest goes on with them; the further ones are nobody's hurry.
            self._end.set_result(None)
            self._lookup.widen(WIDTH + self._further)
            self._further = 0
            self._go_on()

    def _ask(self, contact: Contact) -> None:
        def slow() -> None:
            self._lookup.slow(contact)
            self._go_on()

        def end(ended: RpcEnded) -> None:
            answer = ended.answer
            if isinstance(answer, FindAnswer):
                named = read_contacts(answer.contacts, contact.ip, MOST_CONTACTS)
                self._lookup.answered(contact, [one for one in named if self._protocol.usable(one)])
                heard = self._heard_late if self._end.done() else self._heard
                if heard is not None:
                    heard(contact, answer)
            else:
                self._lookup.failed(contact)
            self._go_on()

        token = self._protocol.token_of(contact.address)
        question = Find(self._target, token, self._start() if self._start else b"")
        size = 0 if token else RECORDS_SIZE if self._start else NODES_SIZE
        self._asked += 1
        suspected = self._protocol.calls.suspects(contact.address)
        self._protocol.ask(contact, question, end, slow, size)
        if suspected:
            self._lookup.slow(contact)


def drop(contact: Contact, answer: FindAnswer) -> None:
    """For a look-up of which only the nodes matter."""
