"""The answers of a node: to everybody who it is, and, when others can reach it, what it knows and holds."""

from __future__ import annotations

from collections.abc import Callable

from axonp2p.errors import MalformedMessage
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import public_key_of
from axonp2p.table.dht.records.record_store import RecordStore
from axonp2p.table.dht.routing.contact import read_host
from axonp2p.table.dht.routing.routing_table import ContactTable
from axonp2p.table.dht.rpc.rpc import (
    FRAME_BYTES,
    HI_PURPOSE,
    PLACE_BYTES,
    Answer,
    Call,
    Find,
    FindAnswer,
    Get,
    GetAnswer,
    Hi,
    HiAnswer,
    Put,
    PutAnswer,
    hi_payload,
    room_for_answer,
)
from axonp2p.transport.flow.address_tokens import TOKEN_BYTES

CONTACTS_AN_ANSWER = 8
_OVERHEAD = FRAME_BYTES + 1 + 1 + (2 + TOKEN_BYTES) + 1 + 3 + 1
"""Of a `find` answer without contacts and records, in bytes."""
_BYTES_STRING = 2
"""The bytes that msgpack adds to a contact."""

Address = tuple[str, int]


class Answering:
    """One node's answers. It decides and sends nothing."""

    def __init__(
        self, key: PrivateKey, table: ContactTable, store: RecordStore, coordinate: Callable[[], bytes]
    ) -> None:
        self.serves = False
        """Whether questions other than `hi` are answered."""
        self._key = key
        self._public_key = public_key_of(key.peer_id)
        self._table = table
        self._store = store
        self._coordinate = coordinate

    def answer(self, call: Call, sender: Address, size: int, now: float) -> Answer | None:
        """The answer to a question of `size` bytes at `now` (Unix seconds); None where silence is the answer.

        Raises `MalformedMessage` when the sender's address is none that can be answered.
        """
        question = call.question
        if isinstance(question, Hi):
            return self._hi(question, sender, now)
        if not self.serves:
            return None
        if isinstance(question, Put):
            result = self._store.put(
                question.key, question.depth, question.record, token=question.token, source=sender[0], now=now
            )
            return PutAnswer(result.outcome.value)
        room = room_for_answer(size, self._store.tokens.knows(sender[0], question.token, now))
        if isinstance(question, Find):
            return self._find(question, call.caller, sender, room, now)
        return self._get(question, room, now)

    def _hi(self, question: Hi, sender: Address, now: float) -> HiAnswer:
        host = read_host(sender[0])
        seen = host.packed + sender[1].to_bytes(2)
        coordinate = self._coordinate()
        signature = self._key.sign(HI_PURPOSE, hi_payload(question.nonce, seen, coordinate))
        token = self._store.tokens.token_for(host.text, now)
        return HiAnswer(self._public_key, signature, token, seen, coordinate, self.serves)

    def _find(self, question: Find, caller: bytes, sender: Address, room: int, now: float) -> FindAnswer:
        contacts: list[bytes] = []
        room -= _OVERHEAD
        for contact in self._table.nearest(question.key, CONTACTS_AN_ANSWER, exclude=caller):
            packed = contact.pack()
            if room < len(packed) + _BYTES_STRING:
                break
            contacts.append(packed)
            room -= len(packed) + _BYTES_STRING
        token = self._store.tokens.token_for(sender[0], now)
        page = self._store.get(question.key, question.start, room if question.start else 0, now)
        return FindAnswer(contacts, token, page.rows, min(page.total, 65535), page.split)

    def _get(self, question: Get, room: int, now: float) -> GetAnswer:
        if len(question.start) != PLACE_BYTES:
            raise MalformedMessage("a page begins somewhere")
        page = self._store.get(question.key, question.start, room - _OVERHEAD, now)
        return GetAnswer(page.rows, min(page.total, 65535), page.split)
