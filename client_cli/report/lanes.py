"""The work of each peer over time: one lane a peer, made of spans, while the job was at work. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from axonp2p.client.events import events
from client_cli.report.story import Life

Doing = Literal[
    "ready", "train", "exchange", "wait", "behind", "paused", "lost", "now", "ran", "failed", "copy", "stuck"
]
"""`ready`: hired, and not at work yet; `lost`: its work did not count; `now`: what runs; `ran`, `failed`: a copy of a
command, or calls; `copy`: calls that were stuck at another peer; `stuck`: those there."""


@dataclass(frozen=True)
class Span:
    """A stretch of a lane, in seconds of the job's time at work."""

    began: float
    ended: float
    doing: Doing
    name: str = ""
    """Stands on it, where there is room."""
    row: int = 0
    """From below, where it did several things at once."""
    rows: int = 1

    @property
    def lasted(self) -> float:
        """In seconds."""
        return self.ended - self.began


@dataclass(frozen=True)
class Lane:
    """One peer's. Spans of what it does come in order; those of `over` lie upon them."""

    peer: str
    spans: list[Span]
    over: list[Span]
    lost_at: list[float]
    """When it was lost, as often as it was."""


class WorkTime:
    """From Unix seconds to seconds at work: the time between two lives of a job is left out."""

    def __init__(self, lives: list[Life], now: float) -> None:
        """`now`: how far the last life has come."""
        self._lives: list[tuple[float, float, float]] = []
        self.cuts: list[float] = []
        """Where one life ended and the next began."""
        total = 0.0
        for index, life in enumerate(lives):
            ended = max(life.ended, now) if index == len(lives) - 1 else life.ended
            self._lives.append((life.began, ended, total))
            total += max(0.0, ended - life.began)
            self.cuts.append(total)
        self.total = total
        self.cuts = self.cuts[:-1]

    def at(self, moment: float) -> float:
        """Seconds at work at that moment."""
        found = 0.0
        for began, ended, offset in self._lives:
            if moment >= began:
                found = offset + min(moment, ended) - began
        return found


def add_paused(turns: Sequence[events.Event], found: dict[str, Lane], time: WorkTime, last: float) -> None:
    """Over the spans of each lane, those in which its owner paused it; and when it was lost."""
    since: dict[str, float] = {}

    def over(name: str, at: float) -> None:
        began = since.pop(name, None)
        if began is not None and name in found:
            found[name].over.append(Span(time.at(began), time.at(max(began, at)), "paused"))

    for event in turns:
        match event:
            case events.PeerPaused(peer=name):
                since.setdefault(name, event.at)
            case events.PeerResumed(peer=name) | events.PeerLost(peer=name):
                over(name, event.at)
                if isinstance(event, events.PeerLost) and name in found:
                    found[name].lost_at.append(time.at(event.at))
            case events.JobSubmitted():
                for name in list(since):
                    over(name, event.at)
    for name in list(since):
        over(name, last)
