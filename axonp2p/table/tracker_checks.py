"""From the answers of trackers to what is wrong with them, and what mends it: for the doctors (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from axonp2p.errors import AxonError, TrackerUnreachable, Unreachable
from axonp2p.findings import Check, failed, ok, warn
from axonp2p.transport.clock_check import clock_checks

_START_IT = "there: axon-tracker run    or, when it is gone for good, take it out of config.toml"
_SAME_VERSION = "install the same version of Axon there and here"


@dataclass(frozen=True)
class TrackerFacts:
    """The answer of one tracker, or the reason why it did not answer."""

    name: str
    """HOST:PORT"""
    configured: bool
    """The owner named it; a tracker or a row did otherwise."""
    trouble: str = ""
    fix: str = ""
    """The fix, where the call itself tells one."""
    speaks: bool = False
    """Whether somebody answered there, although not as a tracker should."""
    rtt_s: float = 0.0
    clock_off_s: float = 0.0
    """Its clock minus ours."""
    hindered: str = ""
    """The fault that keeps it from its work, by its own account: it answers all the same."""

    def silent(self, within_s: float) -> Self:
        """It has not answered within so many seconds."""
        return replace(self, trouble=f"no answer within {within_s:.0f} s")

    def ended_by(self, error: AxonError) -> Self:
        """The call to it ended so."""
        speaks = not isinstance(error, Unreachable)
        return replace(self, trouble=error.cause or error.message, fix=error.fix, speaks=speaks)


def tracker_checks(trackers: Sequence[TrackerFacts]) -> Iterable[Check]:
    """Those that answer in one line, then each with a fault."""
    answering = [tracker for tracker in trackers if not tracker.trouble]
    if answering:
        told = ", ".join(f"{tracker.name} ({tracker.rtt_s * 1000:.0f} ms)" for tracker in answering)
        yield ok("trackers", f"{len(answering)} of {len(trackers)} answer: {told}")
        yield from clock_checks([(tracker.name, tracker.clock_off_s) for tracker in answering])
    for tracker in answering:
        if tracker.hindered:
            text = f"{tracker.name} answers, and says: {tracker.hindered}"
            yield warn("trackers", text, "its operator: make room there, or axon-tracker check")
    for tracker in trackers:
        if tracker.trouble and answering and not tracker.configured:
            text = f"{tracker.name}, which another tracker named, does not answer: {tracker.trouble}"
            yield warn("trackers", text, "nothing, if it was shut down: it is forgotten after a week")
        elif tracker.trouble:
            what = "answers, but not as a tracker should" if tracker.speaks else "does not answer"
            fix = tracker.fix or (_SAME_VERSION if tracker.speaks else _START_IT)
            yield failed("trackers", TrackerUnreachable(f"{tracker.name} {what}", cause=tracker.trouble, fix=fix))
