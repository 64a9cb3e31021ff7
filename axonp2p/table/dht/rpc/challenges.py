"""Challenges: nobody becomes a contact before a `hi` was answered from its address with the key that its id is made of.

Without it one socket fills a table with ids of its choice (683 of 692 entries, measured with the package).
"""

from __future__ import annotations

import random
from collections import Counter, OrderedDict
from collections.abc import Callable

from axonp2p.errors import BadSignature, MalformedMessage
from axonp2p.identity.keys import verify_by_key
from axonp2p.table.dht.routing.contact import Contact, host_of_packed, is_local, network_of
from axonp2p.table.dht.routing.keys import node_id
from axonp2p.table.dht.routing.routing_table import ContactTable
from axonp2p.table.dht.rpc.pending_rpcs import Address, PendingRpcs, RpcEnded
from axonp2p.table.dht.rpc.rpc import HI_PURPOSE, NONCE_BYTES, Hi, HiAnswer, hi_payload
from axonp2p.transport.address import join_host_port, split_host_port

CALLERS_AT_A_TIME = 16
ANSWERED_AT_A_TIME = 48
MOST_VOTES = 16
SURE_VOTES = 4


class Challenges:
    """The addresses under challenge, and what the answers say of this node's own address."""

    def __init__(
        self,
        own_id: bytes,
        calls: PendingRpcs,
        table: ContactTable,
        chance: random.Random,
        now: Callable[[], float],
        on_proof: Callable[[Address, HiAnswer, float], None],
    ) -> None:
        self._own_id = own_id
        self._calls = calls
        self._table = table
        self._chance = chance
        self._now = now
        self._on_proof = on_proof
        self._under_way: set[Address] = set()
        self._votes: OrderedDict[bytes, str] = OrderedDict()

    @property
    def own_address_seen(self) -> str | None:
        """HOST:PORT as most of the last sixteen networks (each counts once) saw this node; None before the first."""
        most = Counter(self._votes.values()).most_common(1)
        return most[0][0] if most else None

    def consider(self, contact: Contact, asked: bool) -> None:
        """Challenge a contact that was heard of, if the table has use for it. `asked`: it answered a question."""
        if not self._table.knows(contact) and self._table.would_take(contact):
            self.challenge(contact, asked)

    def challenge(self, contact: Contact, asked: bool) -> None:
        """Ask a contact to prove itself; it enters the table when it does, and fails there when it does not.

        Those that only asked, perhaps from forged addresses, leave room for those that answered.
        """
        most = ANSWERED_AT_A_TIME if asked else CALLERS_AT_A_TIME
        if contact.address in self._under_way or len(self._under_way) >= most:
            return

        def end(proven: Contact | None) -> None:
            if proven != contact and self._table.knows(contact) and not self._calls.cut_off:
                self._table.failed(contact)

        self.greet(contact.address, end)

    def greet(self, address: Address, on_end: Callable[[Contact | None], None]) -> None:
        """Ask whoever is at `address` who it is. `on_end` gets the proven contact, None when there is none."""
        nonce = self._chance.randbytes(NONCE_BYTES)
        self._under_way.add(address)

        def end(ended: RpcEnded) -> None:
            self._under_way.discard(address)
            answer = ended.answer
            on_end(self._proven(address, nonce, answer, ended.seconds) if isinstance(answer, HiAnswer) else None)

        self._calls.ask(address, Hi(nonce), end)

    def _proven(self, address: Address, nonce: bytes, answer: HiAnswer, seconds: float) -> Contact | None:
        try:
            verify_by_key(answer.key, HI_PURPOSE, hi_payload(nonce, answer.seen, answer.coordinate), answer.signature)
            seen = host_of_packed(answer.seen[:-2]), int.from_bytes(answer.seen[-2:])
            contact = Contact(node_id(answer.key), address[0], address[1])
        except (BadSignature, MalformedMessage):
            return None
        if contact.id == self._own_id:
            return None  # this node itself, under an address that others know it by
        expected = self._sure_host()
        if expected is not None and seen[0] != expected and not is_local(seen[0]):
            return None  # signed for somebody else, who hands it on as his own
        self._vote(address, seen)
        self._on_proof(address, answer, seconds)
        if not answer.serves:
            return None
        doubtful = self._table.add_contact(contact, self._now())
        if doubtful is not None:
            self.challenge(doubtful, asked=True)
        return contact

    def _sure_host(self) -> str | None:
        """This node's host as others see it, once at least `SURE_VOTES` networks say so and hardly any another."""
        hosts = Counter(split_host_port(seen)[0] for seen in self._votes.values())
        for host, votes in hosts.most_common(1):
            if votes >= SURE_VOTES and votes * 4 >= hosts.total() * 3:
                return host
        return None

    def _vote(self, address: Address, seen: Address) -> None:
        if is_local(seen[0]) and not is_local(address[0]):
            return  # a stranger cannot have seen an address of a private network
        network = network_of(address[0])
        self._votes.pop(network, None)
        self._votes[network] = join_host_port(*seen)
        while len(self._votes) > MOST_VOTES:
            self._votes.popitem(last=False)
