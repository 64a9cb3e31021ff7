"""One node's datagrams: questions in, answers out, and the other way round.

A subclass of the package's protocol, whose own way would let one answer close the socket for good (port 70000), raise
out of a look-up (a list where bytes were meant) or store anything from anybody. All that comes in ends here.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kademlia.node import Node
from kademlia.protocol import KademliaProtocol

from axonp2p.clock import Clock
from axonp2p.errors import MalformedMessage
from axonp2p.identity.keys import PrivateKey
from axonp2p.table.dht.records.record_store import MOST_SOURCES, RecordStore
from axonp2p.table.dht.routing.contact import Contact, read_host
from axonp2p.table.dht.routing.routing_table import ContactTable
from axonp2p.table.dht.rpc.answering import Answering
from axonp2p.table.dht.rpc.challenges import Challenges
from axonp2p.table.dht.rpc.datagrams import decode_call, encode_answer, kind_of
from axonp2p.table.dht.rpc.pending_rpcs import Address, PendingRpcs, RpcEnded
from axonp2p.table.dht.rpc.rpc import (
    ANSWER,
    Answer,
    FindAnswer,
    Hi,
    HiAnswer,
    Question,
    name_of,
)
from axonp2p.table.dht.rpc.timing import Timing
from axonp2p.table.dht.rpc.traffic import Traffic
from axonp2p.transport.address import join_host_port
from axonp2p.transport.flow.rate_limit import RateLimit

TOKEN_LIFE_S = 240.0
"""A node's tokens hold for five to ten minutes."""
MOST_TOKENS = 2048
QUESTIONS_A_SECOND, QUESTIONS_AT_ONCE = 100.0, 300.0
"""Of one network; local ones are exempt."""
SIGNATURES_A_SECOND = 1000.0
"""About 2 % of a core."""


@dataclass(frozen=True)
class Surroundings:
    """The values that a node is given from outside: time, chance, and the listener for round trips."""

    clock: Clock
    chance: random.Random
    """`random.SystemRandom` outside of tests: numbers and nonces must not be guessed."""
    coordinate: Callable[[], bytes]
    """Where this node stands in the network, as far as it knows."""
    on_rtt: Callable[[float, bytes, str], None]
    """Told each round trip in seconds with the other's coordinate and HOST:PORT."""


class DhtProtocol(KademliaProtocol):  # type: ignore[misc]  # kademlia has no types
    """The package's protocol with our frame, table, store and questions. Never raises out of a datagram."""

    def __init__(self, node: Node, store: RecordStore, ksize: int, key: PrivateKey, surroundings: Surroundings) -> None:
        super().__init__(node, store, ksize)
        self.surroundings = surroundings
        self._loop = asyncio.get_running_loop()
        self._six = False
        self._paused = False
        self._questions = RateLimit(QUESTIONS_A_SECOND, QUESTIONS_AT_ONCE, MOST_SOURCES)
        self._signatures = RateLimit(SIGNATURES_A_SECOND, SIGNATURES_A_SECOND, MOST_SOURCES)
        self._tokens: OrderedDict[Address, tuple[bytes, float]] = OrderedDict()
        self._places: OrderedDict[Address, bytes] = OrderedDict()
        self.traffic = Traffic()
        self.timing = Timing()
        self.router = ContactTable(node.id, ksize, self._loop.time())
        self.answering = Answering(key, self.router, store, surroundings.coordinate)
        chance = surroundings.chance
        self.calls = PendingRpcs(node.id, self._send, self.timing, self.traffic, chance)
        self.challenges = Challenges(node.id, self.calls, self.router, chance, self._loop.time, self._on_proof)

    def __getattr__(self, name: str) -> Any:
        # The package makes a remote call out of every name that it does not have, a misspelt one too.
        raise AttributeError(name)

    # --- asking -----------------------------------------------------------------------------------

    def ask(
        self,
        contact: Contact,
        question: Question,
        on_end: Callable[[RpcEnded], None],
        on_slow: Callable[[], None] | None = None,
        size: int = 0,
    ) -> None:
        """Ask a contact; what its answer or silence says of it goes to the table before `on_end` is called."""

        def end(ended: RpcEnded) -> None:
            known = self.router.knows(contact)
            if ended.answer is None:
                if known and ended.telling:
                    self.router.failed(contact)
            elif known:
                self.router.heard(contact, self._loop.time())
            else:
                self.challenges.consider(contact, asked=True)
            if isinstance(ended.answer, FindAnswer):
                self._remember_token(contact.address, ended.answer.token)
            if ended.seconds and contact.address in self._places:
                self._measured(contact.address, ended.seconds)
            on_end(ended)

        self.calls.ask(contact.address, question, end, on_slow, size)

    async def asked(self, contact: Contact, question: Question, size: int = 0) -> Answer | None:
        """`ask`, and wait for the answer; None when there is no sound one within `HARD_LIMIT_S`."""
        future: asyncio.Future[Answer | None] = self._loop.create_future()

        def end(ended: RpcEnded) -> None:
            if not future.done():
                future.set_result(ended.answer)

        self.ask(contact, question, end, size=size)
        return await future

    def token_of(self, address: Address) -> bytes:
        """The token that the node at `address` handed out lately, or nothing."""
        token, since = self._tokens.get(address, (b"", 0.0))
        return token if self._loop.time() - since < TOKEN_LIFE_S else b""

    def usable(self, contact: Contact) -> bool:
        """Whether it makes sense to ask it: of this socket's family, not this node, and not silent lately."""
        if not self.same_family(contact.ip) or contact.id == self.source_node.id:
            return False
        return not self.timing.rests(contact.address, self._loop.time())

    def same_family(self, host: str) -> bool:
        """Whether this socket can send to an IP address: one of IPv6 only to IPv6, one of IPv4 only to IPv4."""
        return (":" in host) is self._six

    # --- the socket -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        name = transport.get_extra_info("sockname")
        self._six = bool(name) and ":" in name[0]

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        sender = (addr[0], addr[1])
        try:
            kind, number = kind_of(data)
            if kind == ANSWER:
                self.calls.answered(number, data, sender)
            else:
                self._asked(data, sender)
        except MalformedMessage:
            self.traffic.refused("malformed")

    def error_received(self, exc: Exception) -> None:
        # An unreachable host, say. Its silence is noticed where it was asked.
        self.traffic.refused("socket")

    def pause_writing(self) -> None:
        """The kernel takes no more: what cannot leave now is lost, as on any line, instead of piling up here."""
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False

    def _asked(self, data: bytes, sender: Address) -> None:
        now = self._loop.time()
        host = read_host(sender[0])
        if not host.local and not self._questions.allows(host.network.hex(), now):
            self.traffic.refused("too-many")
            return
        call = decode_call(data)
        # A `hi` costs a signature before anything is known of the sender, whose address may be forged each time.
        if isinstance(call.question, Hi) and not self._signatures.allows("", now):
            self.traffic.refused("too-many-hi")
            return
        name = name_of(call.question)
        self.traffic.heard(name, len(data))
        answer = self.answering.answer(call, sender, len(data), self.surroundings.clock.now())
        if answer is not None:
            datagram = encode_answer(call.number, answer)
            self.traffic.sent(f"{name}-answer", len(datagram))
            self._send(datagram, sender)
        self._hear_of(Contact(call.caller, *sender), call.serves, isinstance(call.question, Hi))

    def _hear_of(self, caller: Contact, serves: bool, greeted: bool) -> None:
        """A caller may be a contact, once it has proved itself; a node that knows nobody asks even one that serves
        not, as that is how the first two of a network learn their own addresses."""
        if not self.usable(caller):
            return
        if serves:
            self.challenges.consider(caller, asked=False)
        elif greeted and not len(self.router):
            self.challenges.challenge(caller, asked=False)

    def _send(self, datagram: bytes, address: Address) -> None:
        if self.transport is not None and not self.transport.is_closing() and not self._paused:
            self.transport.sendto(datagram, address)

    def _on_proof(self, address: Address, answer: HiAnswer, seconds: float) -> None:
        self._remember_token(address, answer.token)
        self._places.pop(address, None)
        self._places[address] = answer.coordinate
        if len(self._places) > MOST_TOKENS:
            self._places.popitem(last=False)
        if seconds:
            self._measured(address, seconds)

    def _measured(self, address: Address, seconds: float) -> None:
        self.surroundings.on_rtt(seconds, self._places[address], join_host_port(*address))

    def _remember_token(self, address: Address, token: bytes) -> None:
        self._tokens.pop(address, None)
        self._tokens[address] = token, self._loop.time()
        if len(self._tokens) > MOST_TOKENS:
            self._tokens.popitem(last=False)
