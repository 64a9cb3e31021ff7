"""The computer whose clock is wrong: from how far others' clocks are off to what a doctor says (pure)."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from axonp2p.errors import ClockWrong
from axonp2p.findings import Check, FindingState, failed, ok, warn
from axonp2p.transport.messages import CLOCK_TOLERANCE_S

NOTABLE_CLOCK_S = 5.0
"""Less than what is refused, but more than clocks that are kept by NTP differ."""
_NOT_BELIEVED = "what is signed at another time is taken for expired, or for not yet valid"
_SET_CLOCK = "sudo timedatectl set-ntp true"

Off = tuple[str, float]
"""A tracker's name, and its clock minus this computer's in seconds."""


def clock_checks(trackers: Sequence[Off]) -> Iterable[Check]:
    """The finding on the clocks of this computer and of `trackers`, of which there is at least one."""
    # This computer is one voice among the others: whose clock is far from the middle of all is wrong.
    middle = statistics.median_low([0.0, *(off for _, off in trackers)])
    if len(trackers) == 1 and abs(trackers[0][1]) > NOTABLE_CLOCK_S:
        name, off = trackers[0]
        yield _check(f"this computer's and {name}'s differ by {_seconds(off)}", off)
        return
    far = [(name, off - middle) for name, off in trackers if abs(off - middle) > NOTABLE_CLOCK_S]
    if abs(middle) > NOTABLE_CLOCK_S:
        yield _check(f"this computer's is {_seconds(middle)} {'behind' if middle > 0 else 'ahead of'} others", middle)
    elif not far:
        yield ok("clock", f"{max((off for _, off in trackers), key=abs):+.1f} s from the trackers'")
    for name, off in far:
        text = f"{name}'s is {_seconds(off)} {'ahead of' if off > 0 else 'behind'} everybody else's"
        yield _check(text, off, where=f"at {name}: ")


def wrong_clock(trackers: Sequence[Off]) -> ClockWrong | None:
    """Why nothing that is signed here is believed there, or the other way; None while clocks are near enough."""
    checks = clock_checks(trackers) if trackers else ()
    error = next((check for check in checks if check.state is FindingState.FAIL), None)
    return None if error is None else ClockWrong(error.text, cause=_NOT_BELIEVED, fix=error.fix)


def _check(text: str, off: float, where: str = "") -> Check:
    fix = where + _SET_CLOCK
    if abs(off) > CLOCK_TOLERANCE_S:
        return failed("clock", ClockWrong(f"{text}; more than {CLOCK_TOLERANCE_S} s are refused", fix=fix))
    return warn("clock", text, fix, ClockWrong.code)


def _seconds(off: float) -> str:
    return f"{abs(off):.0f} s"
