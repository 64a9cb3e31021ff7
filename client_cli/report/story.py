"""The story of a job: its lives, its peers, and the events that are worth a mark (`folding` makes it of events). Pure.

A job may have several lives: it is left, or its client is killed, and it is resumed from what was kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from axonp2p.client.events import events

MarkKind = Literal[
    "lost", "handed back", "behind", "joined", "redone", "exchange", "paused", "resumed", "waits", "goes on", "again",
    "over",
]  # fmt: skip
"""The kinds of events that marks show."""

StateOfPeer = Literal["hired", "works", "paused", "behind", "lost"]


@dataclass(frozen=True)
class CurveMark:
    """Something that happened, worth a sign on the curves."""

    at: float
    """Unix seconds; 0 where it is not known."""
    round: int
    """The one that ran, from 0."""
    kind: MarkKind
    peer: str
    """Empty: it is about the whole job."""
    sentence: str


@dataclass(frozen=True)
class StoryLine:
    """A line of what happened, as the terminal showed it."""

    at: float
    sentence: str


@dataclass
class Life:
    """From submit, or resume, to an end or to the last that is known. Unix seconds."""

    began: float
    ended: float
    from_round: int


@dataclass
class PeerStory:
    """One peer, as the client saw it."""

    name: str
    state: StateOfPeer = "hired"
    why: str = ""
    """Why it is paused, behind or lost."""
    gone_at: float = 0.0
    """When it was lost last, or its job broken off."""
    late: bool = False
    """Whether it was hired while the others trained: it takes part once it has joined."""
    rtt_s: float | None = None
    credits: float = 0.0
    samples_per_second: float | None = None
    """In the last round; None once it is gone."""


@dataclass
class Story:
    """The part of the story that all kinds of jobs have, up to now; a kind's own story adds its work."""

    marks: list[CurveMark] = field(default_factory=list)
    said: list[StoryLine] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    peers: dict[str, PeerStory] = field(default_factory=dict)
    distances: dict[str, float] = field(default_factory=dict)
    """Measured round trips to candidates, in seconds."""
    among: dict[str, dict[str, float]] = field(default_factory=dict)
    """Guessed round trips between peers, in seconds; each pair once."""
    turns: list[events.Event] = field(default_factory=list)
    """All that says when a peer came, went, stood still or went on."""
    sent_at: float = 0.0
    """When the bundle was with the peers of this life, as Unix seconds; 0: it is not."""
    waits_for: list[str] = field(default_factory=list)
    last: events.Event | None = None

    @property
    def done(self) -> int:
        """How many units of work are done: rounds, copies."""
        raise NotImplementedError

    def peer(self, name: str) -> PeerStory:
        """The story of this peer; a new one where there is none yet."""
        return self.peers.setdefault(name, PeerStory(name))
