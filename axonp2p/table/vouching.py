"""The trackers that configured trackers' operators vouch for (pure): signed lists, the newest of each operator.

A list is dated, numbered and ends after seven days: one that an operator has struck out is trusted for no longer than
that by whoever hears nothing new, and an operator's tracker may be away for a few days without harm. Vouching does not
pass on: who is vouched for vouches for nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from axonp2p.errors import BadSignature, MalformedMessage, StaleRow
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.table.records import MOST_VOUCHED, VouchedTracker, Vouching
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from axonp2p.wire.envelope import Signed, open_signed, sign

VOUCHED_FOR_S = 7 * 24 * 3600
"""A list ends so long after it was signed, in seconds."""
MOST_VOUCHERS = 32
"""Configured trackers whose lists are kept."""


def sign_vouching(key: PrivateKey, trackers: Mapping[PeerId, str], now: float) -> Signed[Vouching]:
    """The list of these trackers, addresses by id, signed at `now` (Unix seconds)."""
    named = [VouchedTracker(tracker=tracker, address=address) for tracker, address in trackers.items()]
    return sign(
        key,
        Vouching(
            tracker=key.peer_id,
            number=int(now * 1000),
            expires=int(now) + VOUCHED_FOR_S,
            trackers=named[:MOST_VOUCHED],
        ),
    )


def open_vouching(signed: Signed[Vouching], voucher: PeerId, now: float) -> Vouching:
    """The list in an envelope when `voucher` signed it and it holds at `now`.

    Raises `BadSignature` (also when it is another's), `StaleRow` when it has ended, `MalformedMessage` when it claims
    to be of the future or to live too long, and what `open_signed` raises.
    """
    if signed.signer != voucher:
        raise BadSignature(f"{short(voucher)} shows a list that {short(signed.signer)} signed")
    vouching = open_signed(signed, Vouching)
    if vouching.tracker != voucher:
        raise BadSignature(f"a list of {short(vouching.tracker)} was signed by {short(voucher)}")
    if vouching.expires <= now:
        raise StaleRow(f"the list of trackers that {short(voucher)} vouches for has expired")
    latest = now + CLOCK_TOLERANCE_S
    if vouching.number > latest * 1000 or vouching.expires > latest + VOUCHED_FOR_S:
        raise MalformedMessage(f"the list of trackers that {short(voucher)} vouches for is of the future")
    return vouching


class Vouchings:
    """The newest list of each voucher."""

    def __init__(self) -> None:
        self._newest: dict[PeerId, tuple[Vouching, Signed[Vouching]]] = {}

    def hear(self, signed: Signed[Vouching], voucher: PeerId, now: float) -> bool:
        """`voucher` showed its list; whether it is newer than the known one. Raises what `open_vouching` raises."""
        vouching = open_vouching(signed, voucher, now)
        known = self._newest.get(voucher)
        if known is not None and known[0].number >= vouching.number:
            return False
        if known is None and len(self._newest) >= MOST_VOUCHERS:
            return False
        self._newest[voucher] = vouching, signed
        return True

    def trackers(self, vouchers: Iterable[PeerId], now: float) -> dict[PeerId, str]:
        """Addresses by id of all that these vouchers vouch for at `now`."""
        found: dict[PeerId, str] = {}
        for voucher in vouchers:
            known = self._newest.get(voucher)
            if known is not None and known[0].expires > now:
                found |= {one.tracker: one.address for one in known[0].trackers}
        return found

    def keep_only(self, vouchers: Collection[PeerId]) -> None:
        """Forget the lists of all others."""
        self._newest = {voucher: known for voucher, known in self._newest.items() if voucher in vouchers}

    @property
    def signed(self) -> list[Signed[Vouching]]:
        """The lists, to be kept."""
        return [signed for _, signed in self._newest.values()]
