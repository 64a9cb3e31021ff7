"""The first word about this peer and the sentence after it, alike in a terminal and on the page (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.sandbox.walls.diagnosis import FIXED_BY
from peer_daemon.control.status import State, Status
from peer_daemon.page.words import WORDS

NOT_FINDABLE = "NOT FINDABLE"


@dataclass(frozen=True)
class Headline:
    """`look`: whose sign and colour it has; `fix`: the command that puts it right, where there is one."""

    word: str
    sentence: str
    look: State
    fix: str = ""


def headline(status: Status) -> Headline:
    """What an owner must know first: a peer that nobody can find is not ready, whatever else holds."""
    if not status.findable and status.state in ("ready", "waiting"):
        fix = "axon-peer doctor" if status.network.trackers else "axon-peer run --tracker URL"
        return Headline(NOT_FINDABLE, f"nobody can send it work: {why_not_findable(status)}", "refused", fix)
    sentence, _, fix = status.sentence.partition(FIXED_BY)  # a sandbox's diagnosis names the command where it knows one
    return Headline(WORDS[status.state], sentence, status.state, fix)


def why_not_findable(status: Status) -> str:
    """In a clause, with the tracker's own trouble where one is known."""
    if not status.network.trackers:
        return "it knows no tracker, and no DHT node has taken its announcement"
    troubles = dict.fromkeys(tracker.trouble for tracker in status.network.trackers if tracker.trouble)
    told = f" ({'; '.join(troubles)})" if troubles else ""
    return f"no tracker and no DHT node has taken its announcement{told}"
