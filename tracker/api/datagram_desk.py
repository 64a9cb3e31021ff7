"""A tracker's answers to datagrams, cheapest checks first (pure but for the announce itself, which is taken in).

    length and magic          without them there is no answer
    the address's token       two hashes; without a good one the sender is told one, in fewer bytes than it asked with
    the household's limit     counted only now: a forged address cannot use up what its owner may ask
    the rules for announces   in the order of `announces`; a row's signature costs more than all of the above

A no is told in one word, and the peer hears the reason when it announces by HTTPS: nothing of an error is told twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from enum import StrEnum

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, TooOften
from axonp2p.identity.keys import PrivateKey
from axonp2p.table.announce_datagrams import (
    KEY_BYTES,
    NEWS_BYTES,
    NO_TOKEN,
    TICKET_BYTES,
    TICKETS_PURPOSE,
    AnnounceQuestion,
    DatagramTicket,
    Yes,
    read_question,
    ticket_key,
    write_no,
    write_token,
    write_yes,
)
from axonp2p.table.records import Row
from axonp2p.transport.flow.address_tokens import AddressTokens
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed
from tracker.api.announces import Announces

_SIGNED_ROW = Signed[Row]
MOST_AT_ONCE = 4096
"""Announces that wait for the disk; over that, peers hear a no."""


class DatagramOutcome(StrEnum):
    """The outcome for a datagram, as the metrics count it."""

    DROPPED = "dropped"
    AGAIN = "again"
    """It was told a token, with which to ask again."""
    NO = "no"
    YES = "yes"


class DatagramDesk:
    """One tracker's. `randbytes` must be the operating system's outside of tests."""

    def __init__(
        self,
        key: PrivateKey,
        announces: Announces,
        limit: RateLimit,
        clock: Clock,
        randbytes: Callable[[int], bytes],
    ) -> None:
        self._secret = key.derived(TICKETS_PURPOSE)
        self._announces = announces
        self._limit = limit
        self._clock = clock
        self._randbytes = randbytes
        self._tokens = AddressTokens(randbytes(KEY_BYTES))
        self._at_work = 0
        self.said: Counter[str] = Counter()
        """How many datagrams came, by `DatagramOutcome`."""
        self.on_yes: Callable[[float], None] = lambda seconds: None
        """Told of each row that was taken, and how long that took. A no is counted by HTTPS, the peer's next way."""
        self.news: Callable[[], bytes] = lambda: bytes(NEWS_BYTES)
        """`news_of` what this tracker would tell of others."""

    def ticket(self) -> DatagramTicket:
        """A new one, for a peer that asks over HTTPS."""
        ticket = self._randbytes(TICKET_BYTES)
        return DatagramTicket(ticket=ticket, key=ticket_key(self._secret, ticket))

    def hear(self, datagram: bytes, address: str) -> AnnounceQuestion | bytes:
        """The announce to be taken in (`take`), or the bytes to answer at once: nothing, where they are empty."""
        question = read_question(datagram)
        if question is None:
            self.said[DatagramOutcome.DROPPED] += 1
            return b""
        now = self._clock.now()
        if question.token == NO_TOKEN or not self._tokens.knows(address, question.token, now):
            self.said[DatagramOutcome.AGAIN] += 1
            return write_token(question.nonce, self._tokens.token_for(address, now))
        try:
            self._limit.take(address, self._clock.monotonic())
        except TooOften:
            return self._no(question)
        return question if self._at_work < MOST_AT_ONCE else self._no(question)

    def take(self, question: AnnounceQuestion, address: str, answer: Callable[[bytes], None]) -> None:
        """Take in an announce from that IP address; `answer` is called with what to say, now or once it is durable."""
        began = self._clock.monotonic()
        try:
            signed = decode_as(question.body, _SIGNED_ROW, Row.LIMIT + ENVELOPE_OVERHEAD)
            accepted = self._announces.accept(signed, address)
        except AxonError:
            answer(self._no(question))
            return

        def told(stored: asyncio.Future[None] | None) -> None:
            try:
                if stored is not None:
                    self._at_work -= 1
                    stored.result()
            except AxonError:
                answer(self._no(question))
                return
            announced = self._announces.answer(accepted, address)
            self.said[DatagramOutcome.YES] += 1
            self.on_yes(self._clock.monotonic() - began)
            key = ticket_key(self._secret, question.ticket)
            answer(write_yes(question.nonce, key, Yes(announced, self.news())))

        # A task for each announce would take a sixth of all the processor time that it costs.
        if accepted.stored is None:
            told(None)
        else:
            self._at_work += 1
            accepted.stored.add_done_callback(told)

    def _no(self, question: AnnounceQuestion) -> bytes:
        self.said[DatagramOutcome.NO] += 1
        return write_no(question.nonce)
