"""Receipts: written for every accepted round, counter-signed by the peer, handed to a tracker, never waited for.

`ReceiptBook` decides (pure): which receipt is next, whether what came back is what we signed. `ReceiptOffice` hands
them in, in the background: to the tracker that gave the reservation when it lives, else to any other, with the token.
With none alive they are the peers' to hand in, who have their own copies.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Self

from axonp2p.client.leasing.lease import Lease
from axonp2p.client.ledger.delivery import LAST_PAUSE_S, LAST_TRIES, Delivery
from axonp2p.client.ledger.receipt_asking import SignatureAsking
from axonp2p.client.storage.job_record import NumberedReceipts
from axonp2p.clock import Clock
from axonp2p.errors import AxonError, MalformedMessage, PeerMisbehaved
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.ledger_client import hand_in
from axonp2p.ledger.receipt import DoublySigned, Receipt, Work, open_doubly_signed, open_receipt, receipt_batch_of
from axonp2p.logs import get_logger
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.messages import LONGEST_TEXT
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import Signed, sign

SIGNED_LIMIT = 4096
log = get_logger(__name__)


class ReceiptBook:
    """The receipts of one job: numbered within each reservation and peer, open until the peer has signed."""

    def __init__(self, key: PrivateKey, job: str, kept: Iterable[NumberedReceipts] = ()) -> None:
        """`kept` is what an earlier life of the job wrote down."""
        self._key = key
        self._job = job
        self._last: dict[tuple[str, PeerId], int] = {}
        self._open: dict[tuple[str, PeerId, int], Signed[Receipt]] = {}
        self._given_up: set[tuple[str, PeerId]] = set()
        self.flops: dict[PeerId, int] = {}
        """Counter-signed, by peer."""
        for one in kept:
            self._last[one.reservation, one.peer] = one.last
            for data in one.open:
                try:
                    signed, number = self._kept(data, one)
                except PeerMisbehaved as error:  # of this disk: no peer has had a hand in it
                    log.info("a kept receipt is of no use", reservation=one.reservation, reason=error.message)
                    continue
                self._open[one.reservation, one.peer, number] = signed

    def _kept(self, data: bytes, place: NumberedReceipts) -> tuple[Signed[Receipt], int]:
        signed: Signed[Receipt] = decode_as(data, Signed[Receipt], SIGNED_LIMIT)
        receipt = open_receipt(signed)
        right = (place.reservation, place.peer, self._key.peer_id, self._job)
        if (receipt.reservation, receipt.peer, receipt.client, receipt.job) != right or receipt.number > place.last:
            raise MalformedMessage("it is the receipt of something else")
        return signed, receipt.number

    @property
    def unsigned(self) -> int:
        """How many receipts their peers have not signed."""
        return len(self._open)

    @property
    def awaited(self) -> int:
        """How many of those may still come back."""
        return sum((reservation, peer) not in self._given_up for reservation, peer, _ in self._open)

    @property
    def unsigned_at(self) -> list[tuple[str, PeerId]]:
        """The reservations and peers of those, each once."""
        return sorted({place[:2] for place in self._open})

    def give_up(self, reservation: str, peer: PeerId) -> None:
        """The peer has gone: what it has not signed is not waited for."""
        self._given_up.add((reservation, peer))

    def wait_for(self, reservation: str, peer: PeerId) -> None:
        """It is there again."""
        self._given_up.discard((reservation, peer))

    def write(self, reservation: str, peer: PeerId, work: Work, now: float) -> bytes:
        """The next receipt for `peer`: an encoded `Signed[Receipt]`. `now` is Unix time."""
        number = self._last.get((reservation, peer), 0) + 1
        self._last[reservation, peer] = number
        receipt = Receipt(
            reservation=reservation,
            number=number,
            job=self._job,
            client=self._key.peer_id,
            peer=peer,
            round=work.unit,
            flops=work.flops,
            samples=work.samples,
            milliseconds=work.milliseconds,
            issued=int(now),
        )
        signed = sign(self._key, receipt)
        self._open[reservation, peer, number] = signed
        return encode(signed)

    def go_on_with(self, places: Collection[tuple[str, PeerId]]) -> None:
        """Of the last life of the job only these reservations and peers live on: nothing comes from the others."""
        self._last = {place: last for place, last in self._last.items() if place in places}
        self._open = {place: signed for place, signed in self._open.items() if place[:2] in places}

    def open(self, reservation: str, peer: PeerId) -> list[bytes]:
        """The receipts that the peer has not signed, the oldest first."""
        return [encode(self._open[place]) for place in sorted(self._open) if place[:2] == (reservation, peer)]

    def keep(self) -> list[NumberedReceipts]:
        """The receipts that the next life of the job has to know."""
        return [
            NumberedReceipts(reservation=reservation, peer=peer, last=last, open=self.open(reservation, peer))
            for (reservation, peer), last in self._last.items()
            if (reservation, peer) not in self._given_up
        ]

    def signed(self, peer: PeerId, data: bytes) -> DoublySigned:
        """The receipt that a peer sent back, when it is an open receipt of its own with its signature.

        Raises `PeerMisbehaved` (`BadSignature`, `MalformedMessage`).
        """
        doubly = decode_as(data, DoublySigned, SIGNED_LIMIT)
        receipt = open_doubly_signed(doubly)
        place = (receipt.reservation, receipt.peer, receipt.number)
        if receipt.peer != peer or self._open.get(place) != doubly.receipt:
            raise PeerMisbehaved("a receipt came back that is not the one that was sent")
        del self._open[place]
        self.flops[peer] = self.flops.get(peer, 0) + receipt.flops
        return doubly


@dataclass(frozen=True)
class Settled:
    """How the receipts of a job ended."""

    kept: int
    """By a tracker."""
    unsigned: int
    not_taken: int
    reason: str
    """Why the last one was not taken, and why peers have not signed theirs."""


class ReceiptOffice:
    """Asks for signatures and hands in what came back. Use it in an `async with`; `settle` at its end."""

    def __init__(self, book: ReceiptBook, trackers: TrackerLines, clock: Clock) -> None:
        self.book = book
        self._trackers = trackers
        self._clock = clock
        self._waiting: dict[str, list[tuple[DoublySigned, bytes]]] = {}
        """By the tracker that gave the reservation: receipts, and the token of each."""
        self._asking: dict[tuple[str, PeerId], SignatureAsking] = {}
        self._pauses: dict[tuple[str, PeerId], tuple[Lease, asyncio.TimerHandle]] = {}
        """Until a receipt that was refused is asked for again."""
        self._last_refusals: Counter[tuple[str, PeerId]] = Counter()
        """At the end of the job."""
        self._why_unsigned: dict[tuple[str, PeerId], str] = {}
        self._kept = 0
        self._refused = 0
        self._reason = ""
        self._delivery = Delivery("handing in receipts", self._hand_in_all, lambda: book.awaited > 0)

    def write(self, works: Iterable[tuple[Lease, Work]]) -> list[tuple[Lease, bytes]]:
        """Receipts for these peers' work. Their signatures are asked for by `ask`."""
        now = self._clock.now()
        return [(lease, self.book.write(*_place(lease), work, now)) for lease, work in works]

    def ask(self, receipts: Iterable[tuple[Lease, bytes]]) -> None:
        """Have each peer sign its receipt, now or when those before it are signed."""
        for lease, receipt in receipts:
            if self._asking.setdefault(_place(lease), SignatureAsking()).flows:
                lease.ask_signature(receipt)
            if lease.hung_up:
                self.given_up(lease)

    def ask_again(self, lease: Lease) -> None:
        """Have a peer sign what it had not signed, as far as is known, when it was heard of last."""
        self._asking[_place(lease)] = SignatureAsking()
        self.ask((lease, receipt) for receipt in self.book.open(*_place(lease)))

    def refused(self, lease: Lease, reason: str) -> None:
        """A peer did not sign: it is asked again after a pause, for its disk may have room by then."""
        place = _place(lease)
        pause = self._asking.setdefault(place, SignatureAsking()).refused(reason)
        if pause is None:
            return
        log.warning("receipt refused by a peer", peer=lease.name, reason=reason)
        self._why_unsigned[place] = f"{lease.name} refused: {reason}"
        if self._delivery.settling:
            self._last_refusals[place] += 1
            if self._last_refusals[place] >= LAST_TRIES:
                self.book.give_up(*place)
                self._delivery.look()
                return
            pause = LAST_PAUSE_S
        handle = asyncio.get_running_loop().call_later(pause, self._ask_oldest, lease)
        self._pauses[place] = (lease, handle)

    def _ask_oldest(self, lease: Lease) -> None:
        self._pauses.pop(_place(lease), None)
        asking, waiting = self._asking[_place(lease)], self.book.open(*_place(lease))
        if waiting and asking.try_again():
            lease.ask_signature(waiting[0])

    def signed(self, lease: Lease, data: bytes) -> None:
        """A peer sent a receipt back."""
        try:
            doubly = self.book.signed(lease.row.peer, data)
        except PeerMisbehaved as error:
            log.warning("receipt refused", peer=lease.name, reason=error.message)
            self._why_unsigned[_place(lease)] = f"{lease.name}: {error.message}"
            return
        self._why_unsigned.pop(_place(lease), None)
        if self._asking.setdefault(_place(lease), SignatureAsking()).signed():
            self.ask_again(lease)
        promise = lease.promise
        self._waiting.setdefault(promise.tracker, []).append((doubly, encode(promise.token)))
        self._delivery.news()

    def regained(self, lease: Lease) -> None:
        """A peer that was given up is there again."""
        self.book.wait_for(*_place(lease))
        self._why_unsigned.pop(_place(lease), None)

    def given_up(self, lease: Lease) -> None:
        """The peer will sign nothing any more."""
        self.book.give_up(*_place(lease))
        self._why_unsigned.setdefault(_place(lease), f"{lease.name} went away before it had signed")
        self._delivery.look()

    async def settle(self, seconds: float) -> Settled:
        """Wait at most so long until every receipt is signed and kept, then stop."""
        self._delivery.end_soon()
        for lease, pause in list(self._pauses.values()):
            pause.cancel()
            self._ask_oldest(lease)
        if not await self._delivery.settle(seconds):
            log.warning("receipts are missing", unsigned=self.book.unsigned)
        await self._stop()
        not_taken = self._refused + sum(len(waiting) for waiting in self._waiting.values())
        return Settled(self._kept, self.book.unsigned, not_taken, self._why())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stop()

    def _why(self) -> str:
        """Of what is missing."""
        reasons = [self._why_unsigned.get(place, "a peer did not answer in time") for place in self.book.unsigned_at]
        return "; ".join(dict.fromkeys([*filter(None, [self._reason]), *reasons]))[:LONGEST_TEXT]

    async def _stop(self) -> None:
        for _, pause in self._pauses.values():
            pause.cancel()
        await self._delivery.stop()

    async def _hand_in_all(self) -> bool:
        reached = [await self._hand_in(tracker) for tracker in list(self._waiting)]
        return all(reached)

    async def _hand_in(self, tracker: str) -> bool:
        waiting = self._waiting[tracker]
        while waiting:
            batch = receipt_batch_of(waiting)
            ask = functools.partial(hand_in, receipts=batch.receipts, tokens=batch.tokens)
            try:
                _, answer = await self._trackers.first(ask, before=tracker)
            except AxonError as error:
                self._reason = f"{error.in_a_line}; their peers keep them and hand them in when a tracker is back"
                log.warning("receipts not taken", receipts=len(batch.receipts), reason=error.message)
                return False
            del waiting[: len(batch.receipts)]
            self._kept += answer.new + answer.known
            self._refused += len(answer.refused)
            for reason in answer.refused.values():
                self._reason = reason
        return True


def _place(lease: Lease) -> tuple[str, PeerId]:
    return lease.promise.uuid, lease.row.peer
