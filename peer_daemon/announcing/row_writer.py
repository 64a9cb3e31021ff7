"""Write this peer's row: numbered, signed, full for trackers and compact for the DHT."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from axonp2p.clock import Clock
from axonp2p.errors import Busy
from axonp2p.files import write_whole
from axonp2p.identity.keys import PrivateKey
from axonp2p.logs import get_logger
from axonp2p.table.dht.records.compact import CompactRow, withdrawal_of
from axonp2p.table.records import LONGEST_LIFE_S, NUMBER_AHEAD_S, Row
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed, sign
from peer_daemon.announcing.own_row import OwnRow

log = get_logger(__name__)


class Numbers:
    """Sequence numbers that only grow, also over restarts: the time in milliseconds, or one more than the last."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._turn = threading.Lock()
        try:
            self._last = int(path.read_text())
        except (OSError, ValueError):
            self._last = 0  # lost: the clock alone keeps it growing

    def next(self) -> int:
        """The next number, kept on disk before it is used. Touches the disk; any number of threads may call."""
        with self._turn:
            now = int(self._clock.now() * 1000)
            # One that is further ahead than others take was refused by all, and would be until its time comes.
            self._last = max(self._last + 1, now) if self._last <= now + NUMBER_AHEAD_S * 1000 else now
            try:
                write_whole(self._path, str(self._last).encode())
            except OSError as error:
                # A full disk does not silence the peer: the clock alone keeps the numbers growing.
                log.warning("sequence not kept", path=str(self._path), reason=error.strerror)
            return self._last


@dataclass(frozen=True)
class Written:
    """One row, in its two forms."""

    row: Row
    signed: Signed[Row]
    compact: CompactRow | None
    """None while nobody could call this peer."""
    at: float
    """When it was written, Unix seconds."""


class RowWriter:
    """The newest row of this peer. `coordinate` gives where it stands, when that is known."""

    def __init__(
        self, key: PrivateKey, own: OwnRow, numbers: Numbers, clock: Clock, coordinate: Callable[[], bytes]
    ) -> None:
        self.own = own
        self._key = key
        self._numbers = numbers
        self._clock = clock
        self._coordinate = coordinate
        self._last_expires = 0
        self.newest: Written | None = None

    @property
    def signed(self) -> Signed[Row] | None:
        """For whoever asks this peer; None before the first was written."""
        return self.newest.signed if self.newest else None

    def encoded(self) -> bytes:
        """The same as bytes. Raises `Busy` before the first was written."""
        if self.newest is None:
            raise Busy("this peer has only just begun, and has no row yet", fix="try again in a few seconds")
        return encode(self.newest.signed)

    async def renew(self, life_s: float, trackers: list[str]) -> Written:
        """A row that lives for `life_s` seconds from now on, and says that these trackers have it."""
        number = await asyncio.to_thread(self._numbers.next)
        now = self._clock.now()
        # A row that ended before an older one would let that one live again where it was not heard of.
        expires = min(max(int(now + life_s), self._last_expires), int(now) + LONGEST_LIFE_S)
        row = self.own.offering(sequence=number, expires=expires, trackers=trackers, coordinate=self._coordinate())
        self._last_expires = max(self._last_expires, row.expires)
        self.newest = Written(row, sign(self._key, row), self.own.compact(row), now)
        return self.newest

    async def withdrawal(self) -> Written:
        """The row that takes back every one before, and outlives them."""
        number = await asyncio.to_thread(self._numbers.next)
        row = self.own.withdrawing(sequence=number, expires=self._last_expires)
        compact = self.newest.compact if self.newest else None
        if compact is not None:
            compact = withdrawal_of(compact, number, self._last_expires)
        self.newest = Written(row, sign(self._key, row), compact, self._clock.now())
        return self.newest
