"""Announces by datagram: their forms, and what makes a tracker's yes believable (pure).

    question   "axA" 1 | nonce (16) | ticket (8) | token (8) | the body of POST /v1/announce
    token      "axA" 2 | nonce | token (8)
    yes        "axA" 3 | nonce | MAC (16) | news (4) | Announced
    no         "axA" 4 | nonce

The ticket comes over HTTPS (GET /v1/datagrams) with a key that the tracker makes of it again whenever it is shown, so
it keeps nothing of anybody. Only a yes has that key's MAC, because only a yes has to be believed: whoever could forge
another answer could as well drop the question, and each of them ends in the same announce by HTTPS.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec

from axonp2p.errors import MalformedMessage
from axonp2p.table.dht.rpc.rpc import LARGEST_DATAGRAM
from axonp2p.table.records import Announced
from axonp2p.transport.flow.address_tokens import TOKEN_BYTES
from axonp2p.wire.codec import Message, decode_as, encode

DATAGRAMS_PATH = "/v1/datagrams"
LEAST_QUESTION = 288
LARGEST_ANSWER = 280
"""No answer is as long as the shortest question: a forged sender's address gets less than was sent."""
NONCE_BYTES, TICKET_BYTES, KEY_BYTES, MAC_BYTES, NEWS_BYTES = 16, 8, 32, 16, 4
DATAGRAM_TICKET_LIMIT = 256
TICKETS_PURPOSE = "axon/datagram-tickets/1"
"""The purpose for which a tracker derives the secret of its tickets: they hold over its restarts."""
NO_TOKEN = bytes(TOKEN_BYTES)

_MAGIC = b"axA"
_QUESTION, _TOKEN, _YES, _NO = (_MAGIC + bytes([kind]) for kind in (1, 2, 3, 4))
_HEAD = struct.Struct(f">4s{NONCE_BYTES}s{TICKET_BYTES}s{TOKEN_BYTES}s")
_ANSWER_BYTES = 4 + NONCE_BYTES
_BODY_AT = _ANSWER_BYTES + MAC_BYTES
MOST_BODY = LARGEST_DATAGRAM - _HEAD.size
"""Bytes of a signed row that a datagram has room for."""


class DatagramTicket(Message, frozen=True):
    """A tracker's answer to GET /v1/datagrams: it takes announces by datagram at the port of its address."""

    ticket: Annotated[bytes, msgspec.Meta(min_length=TICKET_BYTES, max_length=TICKET_BYTES)]
    """Names the key; each question carries it."""
    key: Annotated[bytes, msgspec.Meta(min_length=KEY_BYTES, max_length=KEY_BYTES)]
    """With which the tracker's answers are authentic; secret."""


class AnnounceQuestion(NamedTuple):
    """An announce as it arrives."""

    nonce: bytes
    """Fresh random bytes of the asker: what carries them answers this very question."""
    ticket: bytes
    token: bytes
    """The last one of this tracker, or zeros (`transport.flow.address_tokens`)."""
    body: bytes
    """A `Signed[Row]`."""


@dataclass(frozen=True)
class TokenTold:
    """Ask again with this token: it proves that the asker is where it seems to be."""

    token: bytes


@dataclass(frozen=True)
class Yes:
    """The row is stored durably."""

    announced: Announced
    news: bytes
    """`news_of` what GET /v1/trackers would say."""


@dataclass(frozen=True)
class No:
    """Announce by HTTPS, which tells the reason."""


Answer = TokenTold | Yes | No


def ticket_key(secret: bytes, ticket: bytes) -> bytes:
    """The key that a ticket stands for."""
    return hashlib.blake2b(ticket, key=secret, digest_size=KEY_BYTES).digest()


def news_of(known: Iterable[str], vouched: Iterable[str]) -> bytes:
    """Four bytes that are others once a tracker knows, or vouches for, trackers at other addresses: peers ask for them
    only then."""
    text = "\n".join([*sorted(known), "", *sorted(vouched)])
    return hashlib.blake2b(text.encode(), digest_size=NEWS_BYTES).digest()


def write_question(question: AnnounceQuestion) -> bytes:
    """The datagram of a question."""
    return _HEAD.pack(_QUESTION, question.nonce, question.ticket, question.token) + question.body


def read_question(datagram: bytes) -> AnnounceQuestion | None:
    """The question in a datagram; None for what is none. Nothing in it is believed yet."""
    if not LEAST_QUESTION <= len(datagram) <= LARGEST_DATAGRAM or not datagram.startswith(_QUESTION):
        return None
    _, nonce, ticket, token = _HEAD.unpack_from(datagram)
    return AnnounceQuestion(nonce, ticket, token, datagram[_HEAD.size :])


def write_token(nonce: bytes, token: bytes) -> bytes:
    """The answer to a question without a token that counts."""
    return _TOKEN + nonce + token


def write_no(nonce: bytes) -> bytes:
    """The answer to what cannot be taken."""
    return _NO + nonce


def write_yes(nonce: bytes, key: bytes, yes: Yes) -> bytes:
    """The answer to what is stored."""
    told = yes.news + encode(yes.announced)
    return _YES + nonce + _mac(key, nonce, told) + told


def read_answer(datagram: bytes, nonce: bytes, key: bytes) -> Answer | None:
    """The answer to the question with that nonce; None for anything else, a forged yes too."""
    if len(datagram) > LARGEST_ANSWER or datagram[4:_ANSWER_BYTES] != nonce:
        return None
    kind = datagram[:4]
    if kind == _TOKEN and len(datagram) == _ANSWER_BYTES + TOKEN_BYTES:
        return TokenTold(datagram[_ANSWER_BYTES:])
    if kind == _NO and len(datagram) == _ANSWER_BYTES:
        return No()
    told = datagram[_BODY_AT:]
    if kind != _YES or not hmac.compare_digest(datagram[_ANSWER_BYTES:_BODY_AT], _mac(key, nonce, told)):
        return None
    try:
        return Yes(decode_as(told[NEWS_BYTES:], Announced, LARGEST_ANSWER), told[:NEWS_BYTES])
    except MalformedMessage:
        return No()  # a tracker of another version


def _mac(key: bytes, nonce: bytes, told: bytes) -> bytes:
    return hashlib.blake2b(nonce + told, key=key, digest_size=MAC_BYTES).digest()
