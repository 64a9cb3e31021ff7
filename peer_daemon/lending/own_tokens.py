"""Tokens that this peer signs for itself, for when no tracker lives: who may have one, and for how long (pure).

A client proves nothing by asking but that it holds its key; the lease checks that key, its address and the slot again.
A token given out is remembered only so that a question that is sent again gets the same answer.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass

from axonp2p.errors import Busy, ClockWrong, Refused, TooOften
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.reservation.token import ReserveRequest, Token
from axonp2p.transport.address import source_of
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from axonp2p.wire.envelope import Signed, open_signed, sign
from peer_daemon.lending.lending import Lending

MOST_REMEMBERED = 1024
"""Tokens that are given again to who asks again."""
A_MINUTE = 600
A_MINUTE_FOR_ONE = 20
"""How many tokens it gives within a minute at the most: in all, and to one address or IPv6 /56, or to one key."""


@dataclass(frozen=True)
class _Given:
    request: ReserveRequest
    token: Signed[Token]
    expires: int


class OwnTokens:
    """The tokens of one peer. Times are Unix seconds."""

    def __init__(self, key: PrivateKey, lending: Lending) -> None:
        self._key = key
        self._lending = lending
        self._given: OrderedDict[tuple[str, str], _Given] = OrderedDict()
        self._minute = 0
        self._asked: Counter[str] = Counter()

    def issue(
        self, signed: Signed[ReserveRequest], address: str, free: int, now: float, source: str = ""
    ) -> Signed[Token]:
        """The token for a request from this IP address, when `free` slots are held by nobody.

        `source`: by what it is counted where that is not the household of its address.

        Raises `Refused` with the reason, `ClockWrong`, `Busy` when no slot is free or too many ask, `TooOften` when
        this one does, and what `open_signed` raises.
        """
        request = open_signed(signed, ReserveRequest)
        self._check(request, now)
        asked_by = (signed.signer, request.uuid)
        if given := self._given.get(asked_by):
            wanted = (request.peers, request.kinds, request.seconds)
            if (given.request.peers, given.request.kinds, given.request.seconds) != wanted:
                raise Refused("that UUID is in use for another reservation", fix="choose a new random UUID")
            if given.expires > now:
                return given.token
            raise Refused("that reservation has ended", fix="reserve again with a new UUID")
        self._count(source or source_of(address), signed.signer, now)
        if free < 1:
            raise Busy(f"every slot is taken ({self._lending.offer.slots} in all)")
        token = Token(
            uuid=request.uuid,
            issuer=self._key.peer_id,
            client=signed.signer,
            client_address=address,
            peers=request.peers,
            kinds=request.kinds,
            not_before=int(now),
            expires=int(now) + request.seconds,
        )
        answer = sign(self._key, token)
        self._given[asked_by] = _Given(request, answer, token.expires)
        if len(self._given) > MOST_REMEMBERED:
            self._given.popitem(last=False)
        return answer

    def _check(self, request: ReserveRequest, now: float) -> None:
        off = request.time - now
        if abs(off) > CLOCK_TOLERANCE_S:
            raise ClockWrong(
                f"the request was signed {abs(off):.0f} s {'in the future' if off > 0 else 'ago'}",
                cause=f"a peer takes at most {CLOCK_TOLERANCE_S} s; the clocks may differ",
                fix="set this computer's clock: timedatectl set-ntp true",
            )
        if request.peers != [self._key.peer_id]:
            raise Refused("a peer gives tokens for itself alone", fix="ask each peer for its own")
        if self._lending.offer.refuses:
            raise Refused(f"this peer takes no work: {self._lending.offer.refuses}")
        if missing := [kind for kind in request.kinds if kind not in self._lending.offer.kinds]:
            raise Refused(f"this peer does not take {', '.join(missing)} jobs")

    def _count(self, source: str, client: PeerId, now: float) -> None:
        """Raise `TooOften` for one who asks too often, and `Busy` when all together do.

        Questions in vain are not counted for all: only a signer of a wish that could be granted comes this far.
        """
        minute, wait = int(now // 60), 60 - now % 60
        if minute != self._minute:
            self._minute, self._asked = minute, Counter()
        if any(self._asked[name] >= A_MINUTE_FOR_ONE for name in (source, client)):
            raise TooOften("you ask this peer for too many tokens", fix=f"ask again in {wait:.0f} s", wait_s=wait)
        if self._asked[""] >= A_MINUTE:
            raise Busy("too many ask this peer for tokens", fix=f"ask again in {wait:.0f} s", wait_s=wait)
        self._asked.update((source, client, ""))
