"""The story of a job's calls: which chunk each peer did when, and with which outcome. Pure."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from axonp2p.client.events import events
from axonp2p.kinds.map import events as map_events
from client_cli.map.results_found import ResultsFound
from client_cli.map.stretches import CallStretch, PeerStretches, most_of_each
from client_cli.report.story import MarkKind, Story

MARKS: dict[type[events.Event], MarkKind] = {}
MOST_STUCK = 200
"""The newest are drawn."""
MOST_FAILURES = 100
"""The first are shown."""


@dataclass
class StuckChunk:
    """Calls that took too long at a peer, and were begun at a second one. Unix seconds."""

    peer: str
    copy: int
    """The chunk that was begun."""
    first: int
    calls: int
    began: float
    ended: float = 0.0
    """When one of the two had the results; 0: neither has."""


@dataclass
class OutvotedPeer:
    """A peer that found something else than several others, and what became of its other results."""

    others: list[str] = field(default_factory=list)
    """Those that agreed against it."""
    calls: int = 0
    """In so many calls."""
    first: int = 0
    """The item of the first of them."""
    again: int = 0
    """Results that it alone had given and that count no more."""
    taken: int = 0
    """Those that the program had already."""
    items: list[int] = field(default_factory=list)
    """The first of either."""


@dataclass
class MapStory(Story):
    """The whole of it, up to now."""

    items: int = 0
    results: int = 0
    failed: int = 0
    copied: int = 0
    crashed: int = 0
    chunks: dict[str, PeerStretches] = field(default_factory=dict)
    """By peer."""
    stuck: deque[StuckChunk] = field(default_factory=lambda: deque(maxlen=MOST_STUCK))
    calls_of: Counter[str] = field(default_factory=Counter)
    """Results that count, by peer."""
    errors_of: Counter[str] = field(default_factory=Counter)
    """Those among them that are errors."""
    failures: list[map_events.CallFailed] = field(default_factory=list)
    aside: dict[str, str] = field(default_factory=dict)
    """Why peers get no more calls."""
    waited_of: Counter[str] = field(default_factory=Counter)
    """Results, by peer, that did not count before other peers had made the same calls."""
    outvoted: dict[str, OutvotedPeer] = field(default_factory=dict)
    """By peer."""
    came: int = 0
    """Results of this life of the job."""
    came_from: float = 0.0
    """When the first of them was begun, as Unix seconds."""
    came_until: float = 0.0
    found: ResultsFound = field(default_factory=ResultsFound)
    """The first results, where somebody has looked for them."""

    @property
    def done(self) -> int:
        """How many items have their result."""
        return self.results

    @property
    def rate(self) -> float:
        """Results a second in this life; 0: nobody knows."""
        took = self.came_until - self.came_from
        return self.came / took if self.came and took > 0 else 0.0


def take(story: MapStory, event: events.Event) -> None:
    """Add an event to the story of the calls, before the part that all jobs have in common."""
    match event:
        case events.JobSubmitted(rounds=items, resumed_from_round=results):
            story.items, story.results = max(story.items, items), max(story.results, results)
            story.came, story.came_from = 0, 0.0
            _end_stuck(story, story.lives[-1].ended if story.lives else event.at)
        case events.PeerLost(peer=name):
            _end_stuck(story, event.at, name)
        case events.JobFinished() | events.JobPaused() | events.JobCancelled() | events.JobEndedBadly():
            _end_stuck(story, event.at)
        case map_events.ChunkDone():
            story.items, story.results, story.failed = event.items, event.done, event.failed
            _chunk_done(story, event)
        case map_events.ChunkCopied():
            story.copied += 1
            since = event.at - max(0.0, event.seconds)
            story.stuck.append(StuckChunk(event.slow_peer, event.chunk, event.first, event.calls, since))
        case map_events.ChunkCrashed():
            story.crashed += 1
        case map_events.CallFailed() if len(story.failures) < MOST_FAILURES:
            story.failures.append(event)
        case map_events.PeerSetAside():
            story.aside.setdefault(event.peer, event.reason)  # one that was outvoted may be hired once more
        case map_events.OpinionAwaited():
            story.waited_of[event.peer] += event.calls
            _add_stretch(story, event)
            _works(story, event.peer)
        case map_events.PeerOutvoted():
            one = story.outvoted.setdefault(event.peer, OutvotedPeer(first=event.first))
            one.others += [name for name in event.others if name not in one.others]
            one.calls, one.first = one.calls + event.calls, min(one.first, event.first)
        case map_events.ResultsDoubted():
            one = story.outvoted.setdefault(event.peer, OutvotedPeer())
            one.again, one.taken, one.items = one.again + event.again, one.taken + event.taken, list(event.items)
        case map_events.CallsDone():
            story.items, story.results, story.failed = event.items, event.done, event.failed


def _add_stretch(
    story: MapStory,
    event: map_events.ChunkDone | map_events.OpinionAwaited,
    errors: int = 0,
    *,
    copied: bool = False,
) -> float:
    """Calls on their peer's lane; when they began."""
    began = event.at - max(0.0, event.seconds)
    at_peer = story.chunks.setdefault(event.peer, PeerStretches())
    stretch = CallStretch(began, event.at, event.first, event.calls, errors, copied)
    at_peer.add(stretch, most_of_each(len(story.peers)))
    return began


def _chunk_done(story: MapStory, event: map_events.ChunkDone) -> None:
    copied = any(one.copy == event.chunk for one in story.stuck)
    began = _add_stretch(story, event, event.errors, copied=copied)
    story.calls_of[event.peer] += event.calls
    story.errors_of[event.peer] += event.errors
    story.came_from = min(story.came_from or began, began)
    story.came += event.calls
    story.came_until = max(story.came_until, event.at)
    for one in story.stuck:
        own = one.peer == event.peer and one.first <= event.first < one.first + one.calls
        if not one.ended and (own or one.copy == event.chunk):
            one.ended = event.at
    _works(story, event.peer)


def _works(story: MapStory, name: str) -> None:
    peer = story.peer(name)
    if peer.state == "hired":
        peer.state = "works"


def _end_stuck(story: MapStory, at: float, peer: str = "") -> None:
    for one in story.stuck:
        if not one.ended and peer in ("", one.peer):
            one.ended = at
