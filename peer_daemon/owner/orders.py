"""The owner's standing orders: paused until then or until they say otherwise, or finishing. They outlive a restart."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from axonp2p.clock import Clock
from axonp2p.errors import SettingsError
from axonp2p.files import write_whole
from axonp2p.logs import get_logger
from axonp2p.wire.json_form import decode_json
from axonp2p.wire.quantities import Number, UnixMoment
from peer_daemon.owner.effective_state import StandingOrders

log = get_logger(__name__)

LONGEST_PAUSE_S = 366 * 86400.0
_LARGEST_FILE = 4096
_SET_BACK_S = 60.0
"""Of the two clocks: when they differ by more, the end of a pause is told anew."""


class OwnerOrders(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The owner's last orders. Without any of them: work."""

    paused: bool = False
    finishing: bool = False
    until: UnixMoment | None = None
    """When the pause ends, Unix seconds; None: it does not end by itself."""
    seconds: Number | None = None
    """How long the pause was to be: a clock that goes back makes it no longer."""


def pause(seconds: float | None, now: float) -> OwnerOrders:
    """Paused from `now`, Unix seconds, for so long or until `resume`. Raises `SettingsError` for no such time."""
    if seconds is None:
        return OwnerOrders(paused=True)
    if not (math.isfinite(seconds) and 0 < seconds <= LONGEST_PAUSE_S):
        raise SettingsError(
            f"a pause of {seconds:g} seconds: it is from 1 second to {LONGEST_PAUSE_S / 86400:.0f} days",
            fix="axon-peer pause --for 2h    or, until you resume it: axon-peer pause",
        )
    return OwnerOrders(paused=True, until=now + seconds, seconds=seconds)


def finish() -> OwnerOrders:
    """Rounds that run are ended, then nothing more is done."""
    return OwnerOrders(finishing=True)


def resume() -> OwnerOrders:
    """Work again."""
    return OwnerOrders()


def left(orders: OwnerOrders, now: float) -> float | None:
    """Seconds that a pause still lasts by the wall's clock, never more than it was to last; None: until `resume`."""
    if orders.until is None or orders.seconds is None:
        return None
    return min(max(0.0, orders.until - now), orders.seconds)


class OrdersBook:
    """The orders in force, kept in one small file. Its methods may be called on the loop: the file is tiny.

    A pause ends when the wall's clock or the monotonic one says that its time is over, whichever is first: it is over
    after a night asleep, and a clock that is set back does not make it longer.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        """The order in the file holds on; one that cannot be understood means paused, which harms nobody."""
        self._path = path
        self._clock = clock
        self.not_kept = ""
        """Why a restart would not know of the orders in force; empty when it would."""
        self._orders = _read(path)
        self._ends = self._deadline(clock.now())

    def in_force(self, now: float) -> StandingOrders:
        """The orders that hold at `now`, Unix seconds."""
        orders, until = self._orders, self._orders.until
        if until is not None:
            running_left = self._ends - self._clock.monotonic()
            if left(orders, now) == 0.0 or running_left <= 0:
                self._give(resume(), now)
                return StandingOrders()
            if until - now > running_left + _SET_BACK_S:
                until = float(round(now + running_left))
        return StandingOrders(paused=orders.paused, until=until, finishing=orders.finishing)

    def pause(self, seconds: float | None, now: float) -> None:
        """As the function `pause`; at once, even where it cannot be written down."""
        self._give(pause(seconds, now), now)

    def finish(self) -> None:
        """As the function `finish`."""
        self._give(finish(), self._clock.now())

    def resume(self) -> None:
        """As the function `resume`."""
        self._give(resume(), self._clock.now())

    def _give(self, orders: OwnerOrders, now: float) -> None:
        self._orders = orders
        self._ends = self._deadline(now)
        try:
            write_whole(self._path, msgspec.json.encode(orders) + b"\n")
            self.not_kept = ""
        except OSError as error:
            # The owner is obeyed all the same.
            self.not_kept = f"cannot write {self._path}: {error.strerror}"
            log.warning("orders hold until the daemon is restarted only", reason=self.not_kept)

    def _deadline(self, now: float) -> float:
        seconds = left(self._orders, now)
        return math.inf if seconds is None else self._clock.monotonic() + seconds


def _read(path: Path) -> OwnerOrders:
    try:
        with path.open("rb") as file:
            return decode_json(file.read(_LARGEST_FILE), OwnerOrders)
    except FileNotFoundError:
        return OwnerOrders()
    except (OSError, msgspec.DecodeError) as error:
        log.warning("orders cannot be read, so it pauses", file=str(path), reason=str(error), fix="axon-peer resume")
        return OwnerOrders(paused=True)
