"""What each peer did when: one lane a peer, made of spans, over the time in which the job was at work. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from client_cli.report.story import Life

Doing = Literal["ready", "train", "exchange", "wait", "behind", "paused", "lost", "now", "ran", "failed"]
"""`ready`: hired, and not at work yet; `lost`: its work did not count; `now`: what runs; `ran`, `failed`: a copy."""


@dataclass(frozen=True)
class Span:
    """A stretch of a lane, in seconds of the job's time at work."""

    began: float
    ended: float
    doing: Doing
    name: str = ""
    """Stands on it, where there is room."""

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
