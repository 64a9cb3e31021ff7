"""What happened to the calls of a job: which chunk each peer did when, and what came of it. Pure."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from axonp2p.client.events import events
from axonp2p.kinds.map import events as map_events
from client_cli.report.story import MarkKind, Story

MARKS: dict[type[events.Event], MarkKind] = {}
MOST_CHUNKS = 4000
"""The newest are drawn; sums are of all."""


@dataclass(frozen=True)
class ChunkSpan:
    """Calls that have their results. Unix seconds."""

    peer: str
    began: float
    ended: float
    first: int
    calls: int


@dataclass
class MapStory(Story):
    """The whole of it, up to now."""

    items: int = 0
    results: int = 0
    failed: int = 0
    copied: int = 0
    crashed: int = 0
    chunks: deque[ChunkSpan] = field(default_factory=lambda: deque(maxlen=MOST_CHUNKS))
    calls_of: Counter[str] = field(default_factory=Counter)
    """Results that count, by peer."""
    failures: list[map_events.CallFailed] = field(default_factory=list)
    aside: dict[str, str] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """How many items have their result."""
        return self.results


def take(story: MapStory, event: events.Event) -> None:
    """What calls add to the story; before what all jobs have of the event."""
    match event:
        case events.JobSubmitted(rounds=items):
            story.items = max(story.items, items)
        case map_events.ChunkDone():
            story.items, story.results, story.failed = event.items, event.done, event.failed
            story.calls_of[event.peer] += event.calls
            story.chunks.append(ChunkSpan(event.peer, event.at - event.seconds, event.at, event.first, event.calls))
            peer = story.peer(event.peer)
            if peer.state == "hired":
                peer.state = "works"
        case map_events.ChunkCopied():
            story.copied += 1
        case map_events.ChunkCrashed():
            story.crashed += 1
        case map_events.CallFailed():
            story.failures.append(event)
        case map_events.CallsDone():
            story.items, story.results, story.failed = event.items, event.done, event.failed
