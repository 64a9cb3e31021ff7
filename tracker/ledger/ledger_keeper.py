"""Receipts: checked, stored once, and summed up, but for those that are void.

The sums in memory are a fold over what is stored, kept in step. A receipt names a reservation. Its token is one that
this tracker gave, one that came with an earlier receipt, or one that comes with this one; a token from elsewhere is
stored with the first receipt that it is good for, never alone. `intake` says which are taken, and which stand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import sqlite_utils

from axonp2p.clock import Clock, SystemClock
from axonp2p.errors import LogDamaged, PeerMisbehaved, Refused
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.balances import BalanceSums
from axonp2p.ledger.receipt import (
    MOST_BALANCES,
    Balance,
    Balances,
    BalancesAsked,
    DoublySigned,
    Receipt,
    ReceiptsKept,
    open_doubly_signed,
)
from axonp2p.ledger.voiding import EvidenceTold, VoidingHandedIn, VoidingKept, spoiled_by
from axonp2p.logs import get_logger
from tracker.ledger.backed_credit import BackedCredit
from tracker.ledger.first_sight import stored_among, without_ground
from tracker.ledger.intake import NOBODY, Budget, ListedMachine, TrackerTrust, check_number, check_stranger
from tracker.ledger.known_reservations import Brought, KnownReservation, KnownReservations, open_tokens
from tracker.ledger.voidings import count_convictions, open_handed_in, store_voiding, tell_evidence
from tracker.storage.database import Database
from tracker.storage.index_mending import mend_newest
from tracker.storage.log_store import HALVES, HALVES_THAT_STAND, Appender, LoggedReceipt, TakenBack
from tracker.table.admission import is_new_receipt

log = get_logger(__name__)

_REASON_LENGTH = 300
MOST_VOICES = 54
"""The cost of a check of a conviction, in receipts: so many voices its evidence may have, each read as well."""
COMPARED_AT_START = 20_000
"""Entries whose rows in the index are held to them before anything is summed: a second. Others while it runs."""


@dataclass(frozen=True)
class _Opened:
    """The receipts and tokens that were handed in, once their signatures were checked."""

    receipts: list[tuple[DoublySigned, Receipt | str]]
    """Each with what it says, or why it is not believed."""
    brought: Brought


@dataclass
class _Sums:
    """Of what counts, and of what stands of it."""

    books: BalanceSums
    backed: BackedCredit

    def add(self, one: LoggedReceipt) -> None:
        """A receipt that is new."""
        receipt = one.receipt
        self.books.add(receipt.client, receipt.peer, receipt.flops)
        if one.stands:
            self.backed.add(receipt.client, receipt.peer, receipt.flops)

    def take_back(self, one: LoggedReceipt) -> None:
        """A receipt counts no more."""
        receipt = one.receipt
        self.books.take_back(receipt.client, receipt.peer, receipt.flops)
        if one.stands:
            self.backed.take_back(receipt.client, receipt.peer, receipt.flops)

    def told(self, balance: Balance) -> Balance:
        """With what stands of it."""
        stands = self.backed.earned(balance.key)
        return msgspec.structs.replace(balance, stands=str(stands)) if stands else balance


class LedgerKeeper:
    """Doubly signed receipts, and what makes some of them void.

    `on_news` hears of new ones that no other tracker has passed on, once they are stored.
    """

    def __init__(
        self,
        database: Database,
        trust: TrackerTrust = NOBODY,
        vouched: Collection[PeerId] = (),
        clock: Clock | None = None,
    ) -> None:
        """`vouched`: clients that the operator vouches for, see `BackedCredit`."""
        self._database = database
        self._trust = trust
        self.budget = Budget(clock or SystemClock())
        """The limits on the receipts that sources may have checked and stored."""
        self.exempt: Callable[[str], bool] = lambda source: False
        """Whether a source is the household of a trusted tracker, which passes on what it took itself."""
        self._vouched = vouched
        self._sums = _Sums(BalanceSums(), BackedCredit(vouched))
        # One message's signatures are checked after the other's: all of a flood's at once would take every core.
        self._opening = asyncio.Semaphore(1)
        self._ordering = asyncio.Semaphore(1)
        """The same for putting all keys in order: there may be a million."""
        self.on_news: Callable[[], None] = lambda: None

    def load(self) -> int:
        """Hold the newest entries' index to them, then sum up what is stored; returns how many receipts count."""
        mended, damaged = self._database.load(lambda database: mend_newest(database, COMPARED_AT_START))
        if mended:
            log.error("the index was damaged; its rows were rebuilt from the entries", rows=mended)
        if damaged:
            log.error("entries of the log are damaged", entries=len(damaged), first=damaged[0])
        self._sums = self._database.load(self._sum_up)
        return self._books.receipts

    async def sum_anew(self) -> None:
        """The index was mended while this runs."""
        # In the writer's turn, and taken over before any later change is told: nothing counts twice, or not at all.
        self._sums = await self._database.write(self._sum_up)

    def _sum_up(self, database: sqlite_utils.Database) -> _Sums:
        sums = _Sums(BalanceSums(), BackedCredit(self._vouched))
        _add_all(database, sums.books, backed=sums.backed)
        sums.backed.settle_gathered()
        return sums

    @property
    def _books(self) -> BalanceSums:
        return self._sums.books

    @property
    def receipts(self) -> int:
        """How many count."""
        return self._books.receipts

    def standing_of(self, key: PeerId) -> Balance:
        """The balance of one key: what it owes, and the part of its earnings that stands here."""
        balance = self._books.balance(key)
        return msgspec.structs.replace(balance, earned=str(self._sums.backed.earned(key)))

    async def keep(
        self, receipts: Sequence[DoublySigned], tokens: Sequence[bytes] = (), *, relayed: bool = False, source: str = ""
    ) -> ReceiptsKept:
        """Store what is new; durable when this returns. Receipts are refused one by one, each with its reason.

        `tokens` (encoded `Signed[Token]`) are those of reservations that may not be known here; `relayed` receipts
        come from another tracker. `source` is charged for those of strangers; nobody when it is empty. Raises
        `TooOften` when it pushed too many, `Busy`, and `LogDamaged`.
        """
        exempt = self.exempt(source)
        if not exempt:
            self.budget.charge_checks(source, len(receipts) + len(tokens))
        refused = await self._refused_at_sight(receipts, tokens) if source else {}
        if len(refused) == len(receipts):
            return ReceiptsKept(new=0, known=0, reasons={str(index): reason for index, reason in refused.items()})
        async with self._opening:
            opened = await asyncio.to_thread(_open_all, receipts, tokens, refused)
        peers = {receipt.peer for _, receipt in opened.receipts if isinstance(receipt, Receipt)}
        taking = _Taking(self._trust, {peer: self._trust.machine(peer) for peer in peers}, self.budget, source, exempt)
        kept, new = await self._database.write(lambda database: _store(database, opened, taking, relayed=relayed))
        for receipt, instead_of in new:
            if receipt is not None:
                self._sums.add(receipt)
            if instead_of is not None:
                self._sums.take_back(instead_of)
        if kept.reasons:
            log.debug("receipts refused", receipts=len(kept.reasons), first=next(iter(kept.reasons.values())))
        if new and not relayed:
            self.on_news()
        return kept

    async def _refused_at_sight(self, receipts: Sequence[DoublySigned], tokens: Sequence[bytes]) -> dict[int, str]:
        groundless = without_ground(receipts, tokens, self._trust)
        if not groundless:
            return {}
        wanted = {one.reserved for one in groundless.values()}
        stored = await self._database.read(lambda database: stored_among(database, wanted))
        return {index: one.reason for index, one in groundless.items() if one.reserved not in stored}

    async def void(self, handed_in: VoidingHandedIn, source: str = "") -> VoidingKept:
        """Keep a conviction whose evidence convicts: what it is about counts no more. Durable when this returns.

        `source` is charged as in `keep`. Raises `TooOften`.
        """
        payer = "" if self.exempt(source) else source
        self.budget.charge_checks(payer, MOST_VOICES)
        async with self._opening:
            opened = await asyncio.to_thread(open_handed_in, handed_in)
        if isinstance(opened, str):
            return VoidingKept(new=False, reason=opened)

        def store(database: sqlite_utils.Database) -> tuple[VoidingKept, TakenBack]:
            stored = store_voiding(database, opened, self._trust)
            if stored[0].new:
                self.budget.charge_conviction(payer)
            return stored

        kept, taken_back = await self._database.write(store)
        if taken_back.receipts:
            self._books.take_back(taken_back.client, taken_back.peer, taken_back.flops, taken_back.receipts)
            self._sums.backed.take_back(taken_back.client, taken_back.peer, taken_back.stood)
        if kept.new:
            log.info("receipts void", peer=short(taken_back.peer), job=opened.voiding.job, receipts=taken_back.receipts)
            if not handed_in.relayed:
                self.on_news()
        return kept

    async def convictions(self) -> int:
        """How many are kept."""
        return await self._database.read(count_convictions)

    async def evidence(self, sha256: bytes) -> EvidenceTold:
        """Of a conviction that is kept. Raises `NotFound`."""
        return await self._database.read(lambda database: tell_evidence(database, sha256))

    async def balances(self, asked: BalancesAsked) -> Balances:
        """Of these keys, of everyone in one job, of these keys in one job, or of the largest earners."""
        if asked.job:
            books = await self._database.read(lambda database: _add_all(database, BalanceSums(), asked.job))
            return await _answer(_Sums(books, BackedCredit()), asked)
        if asked.keys:
            return await _answer(self._sums, asked)
        async with self._ordering:
            return await _answer(self._sums, asked)


async def _answer(sums: _Sums, asked: BalancesAsked) -> Balances:
    if not asked.keys:
        # Not on the event loop: there may be a million keys.
        found = await asyncio.to_thread(sums.books.largest, MOST_BALANCES, sums.backed.earned)
        return Balances(balances=[sums.told(one) for one in found], receipts=sums.books.receipts)
    keys = set(asked.keys)
    balances = (sums.told(sums.books.balance(key)) for key in keys)
    ordered = sorted(balances, key=lambda one: (-one.earned_flops, -one.owed_flops, one.key))
    return Balances(balances=ordered, receipts=sums.books.taking_part(keys))


def _open_all(receipts: Sequence[DoublySigned], tokens: Iterable[bytes], refused: Mapping[int, str]) -> _Opened:
    said = [(doubly, refused.get(index) or _open(doubly)) for index, doubly in enumerate(receipts)]
    return _Opened(said, open_tokens(tokens))


def _open(doubly: DoublySigned) -> Receipt | str:
    try:
        return open_doubly_signed(doubly)
    except PeerMisbehaved as error:
        return error.message


_New = tuple[LoggedReceipt | None, LoggedReceipt | None]
"""A receipt that counts now, and the one instead of which it does; None for one that is void, or is not."""


@dataclass(frozen=True)
class _Taking:
    """By which receipts are judged while they are stored."""

    trust: TrackerTrust
    machines: Mapping[PeerId, ListedMachine]
    budget: Budget
    source: str
    exempt: bool
    """Receipts on reservations of trusted trackers cost that source nothing."""

    def check(self, receipt: Receipt, promised: KnownReservation) -> bool:
        """Whether a new one is a stranger's; raises `Refused` when it is not to be taken."""
        token = promised.token
        check_number(receipt, token)
        if self.trust.vouches(token.issuer):
            return False
        if self.source:
            check_stranger(self.trust, token.issuer, receipt, self.machines[receipt.peer])
        return True

    def stands(self, receipt: Receipt, promised: KnownReservation, appender: Appender) -> bool:
        """Whether it counts as earned here, as far as its client has standing."""
        if not self.trust.stands(promised.token.issuer, receipt.client, receipt.peer):
            return False
        return appender.worked(receipt) + receipt.flops <= promised.room(
            receipt.peer, self.machines[receipt.peer].offer
        )


def _store(
    database: sqlite_utils.Database, opened: _Opened, taking: _Taking, *, relayed: bool
) -> tuple[ReceiptsKept, list[_New]]:
    promises, appender = KnownReservations(database, opened.brought), Appender(database)
    new: list[_New] = []
    strangers = 0
    reasons: dict[str, str] = {}

    def if_it_counts(one: LoggedReceipt) -> LoggedReceipt | None:
        return None if appender.is_voided(spoiled_by(one.receipt)) else one

    for index, (doubly, receipt) in enumerate(opened.receipts):
        if isinstance(receipt, str):
            reasons[str(index)] = receipt[:_REASON_LENGTH]
            continue
        try:
            promised = promises.that_fits(receipt.reservation, receipt.client, receipt.peer)
            known = _counted(appender, doubly, receipt)
            if is_new_receipt(receipt, doubly.receipt.payload, promised.promise, _payload(known)):
                strangers += taking.check(receipt, promised)
                stands = taking.stands(receipt, promised, appender)
                appender.add(
                    doubly, receipt, relayed=relayed, instead_of=known.number if known else None, stands=stands
                )
                promises.keep(promised)
                new.append(
                    (if_it_counts(LoggedReceipt(0, doubly, receipt, stands)), if_it_counts(known) if known else None)
                )
        except Refused as error:
            reasons[str(index)] = error.message[:_REASON_LENGTH]
    # Once for all: who is refused as too often shall lose nothing by having asked.
    taking.budget.charge_new(taking.source, 0 if taking.exempt else len(new) - strangers, strangers)
    appender.finish()
    known_before = len(opened.receipts) - len(new) - len(reasons)
    return ReceiptsKept(new=len(new), known=known_before, reasons=reasons), new


def _counted(appender: Appender, doubly: DoublySigned, receipt: Receipt) -> LoggedReceipt | None:
    try:
        return appender.counted(receipt)
    except LogDamaged:
        if not appender.put_back(doubly, receipt):
            raise
        log.warning("a damaged entry was handed in again, and is whole", peer=short(receipt.peer))
        return appender.counted(receipt)


def _payload(known: LoggedReceipt | None) -> bytes | None:
    return known.doubly.receipt.payload if known else None


def _add_all(
    database: sqlite_utils.Database, books: BalanceSums, job: str = "", backed: BackedCredit | None = None
) -> BalanceSums:
    """All that counts, or all of one job."""
    sums = ", ".join(f"sum({half}) AS {name}" for half, name in zip((*HALVES, *HALVES_THAT_STAND), "abcd", strict=True))
    wanted = "AND job = (SELECT id FROM names WHERE name = ?)" if job else ""
    for client, peer, upper, lower, upper_stands, lower_stands, count in database.execute(
        "SELECT clients.name, peers.name, a, b, c, d, sums.count FROM ("  # noqa: S608 (text of ours)
        f" SELECT client, peer, {sums}, count(*) AS count"
        f" FROM receipts WHERE counts = 1 {wanted} GROUP BY client, peer) AS sums"
        " JOIN names AS clients ON clients.id = sums.client JOIN names AS peers ON peers.id = sums.peer",
        [job] if job else [],
    ):
        books.add(client, peer, (upper << 32) + lower, count)
        if backed is not None:
            backed.gather(client, peer, (upper_stands << 32) + lower_stands)
    return books
