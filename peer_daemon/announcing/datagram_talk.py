"""One announce by datagram: what to send, how long to wait, and how it ends (pure).

    asked with the token of the last time, or none
    | a token ---> asked again with that one
    | silence ---> the same again, soon; after `GIVE_UP_AFTER_S` of it HTTPS is tried
    | a yes, a no: the end

A datagram without this announce's nonce, or a yes without the right MAC, is not heard at all: somebody who cannot
read our datagrams cannot end the conversation.
"""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.table.announce_datagrams import NO_TOKEN, AnnounceQuestion, No, TokenTold, Yes, read_answer, write_question
from peer_daemon.announcing.announce_ways import DatagramWay

WAITS_S = (0.3, 0.5, 0.7)
"""Between two sendings, and after the last."""
GIVE_UP_AFTER_S = sum(WAITS_S)
MOST_TOKENS = 2
"""A tracker that keeps giving tokens takes none."""


@dataclass(frozen=True)
class TakenByDatagram:
    """The tracker has the row; the next announce may show this token."""

    yes: Yes
    token: bytes


class DatagramTalk:
    """One announce. `body` is a `Signed[Row]`, `nonce` fresh random bytes."""

    def __init__(self, way: DatagramWay, nonce: bytes, body: bytes) -> None:
        self._way = way
        self._question = AnnounceQuestion(nonce, way.ticket.ticket, way.token, body)
        self._waits = list(WAITS_S)
        self._tokens = 0
        self.outcome: TakenByDatagram | No | None = None
        """How it ended; None while it goes on, and where nobody answered."""

    def send(self) -> tuple[bytes, float] | None:
        """The datagram to send now, and the seconds to wait for an answer before this is asked again; None: give up."""
        if not self._waits:
            return None
        return write_question(self._question), self._waits.pop(0)

    def hear(self, datagram: bytes) -> bool:
        """Something came from there; whether it changes what is to be done: `outcome` or `send` says what."""
        answer = read_answer(datagram, self._question.nonce, self._way.ticket.key)
        if isinstance(answer, Yes):
            self.outcome = TakenByDatagram(answer, self._question.token)
        elif isinstance(answer, No):
            self.outcome = answer
        elif isinstance(answer, TokenTold) and answer.token not in (self._question.token, NO_TOKEN):
            if self._tokens == MOST_TOKENS:
                return False
            self._tokens += 1
            self._question = self._question._replace(token=answer.token)
            self._waits = list(WAITS_S)
        else:
            return False
        return True
