"""The story of the copies of one command: where each ran when, and how it ended. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from axonp2p.client.events import events
from axonp2p.kinds.run import events as run_events
from client_cli.report.story import MarkKind, Story

MARKS: dict[type[events.Event], MarkKind] = {}

HowEnded = Literal["runs", "good", "failed", "given up"]
"""`given up`: its peer was lost, another one was sooner, or the job was left."""


@dataclass
class CopyRun:
    """One attempt at one peer. Unix seconds."""

    index: int
    attempt: int
    peer: str
    began: float
    ended: float = 0.0
    how: HowEnded = "runs"


@dataclass
class IndexStory:
    """One index: its attempts, and its result as far as there is one."""

    index: int
    runs: int = 0
    """Attempts, lost ones and speculative ones too."""
    peer: str = ""
    """Where it ran last, or where its result is from."""
    code: int | None = None
    """Of the copy that ended last."""
    seconds: float | None = None
    files: int = 0
    bytes: int = 0
    done: bool = False
    failed: bool = False
    reason: str = ""


@dataclass
class RunStory(Story):
    """The whole of it, up to now."""

    copies: int = 0
    indices: dict[int, IndexStory] = field(default_factory=dict)
    running: dict[str, CopyRun] = field(default_factory=dict)
    """By peer."""
    over: list[CopyRun] = field(default_factory=list)

    @property
    def done(self) -> int:
        """How many indices have their result."""
        return sum(one.done for one in self.indices.values())

    def index(self, number: int) -> IndexStory:
        """The story of this index; a new one where there is none yet."""
        return self.indices.setdefault(number, IndexStory(number))


def take(story: RunStory, event: events.Event) -> None:
    """Add an event to the story of the copies, before the part that all jobs have in common."""
    match event:
        case events.JobSubmitted(rounds=copies):
            story.copies = copies
            _give_up(story, story.lives[-1].ended if story.lives else event.at)
        case events.JobFinished() | events.JobPaused() | events.JobCancelled() | events.JobEndedBadly():
            _give_up(story, event.at)
        case events.PeerLost(peer=name):
            _end(story, name, event.at, "given up")
        case run_events.CopyBegun() | run_events.CopyRetried() | run_events.SpeculativeCopy():
            _begin(story, CopyRun(event.index, event.attempt, event.peer, event.at))
        case run_events.CopyEnded():
            how: HowEnded = "failed" if event.code else "good"
            _end(story, event.peer, event.at, "given up" if event.unneeded else how)
            one = story.index(event.index)
            if not event.unneeded and not one.done:
                one.peer, one.code, one.seconds, one.reason = event.peer, event.code, event.seconds, event.reason
        case run_events.OutputsKept():
            one = story.index(event.index)
            one.done, one.failed, one.peer, one.code = True, False, event.peer, 0
            one.files, one.bytes = event.files, event.bytes
            story.copies = max(story.copies, event.copies)
        case run_events.IndexFailed():
            one = story.index(event.index)
            one.done = one.failed = True
            one.peer, one.code, one.reason = event.peer, event.code, event.reason
            story.copies = max(story.copies, event.copies)
        case run_events.OutputsLost(indices=lost):
            for number in lost:
                story.index(number).done = False


def _begin(story: RunStory, run: CopyRun) -> None:
    _end(story, run.peer, run.began, "given up")
    story.running[run.peer] = run
    peer = story.peer(run.peer)
    if peer.state == "hired":
        peer.state = "works"
    one = story.index(run.index)
    one.runs += 1
    if not one.done:
        one.peer = run.peer


def _end(story: RunStory, peer: str, at: float, how: HowEnded) -> None:
    if run := story.running.pop(peer, None):
        run.ended, run.how = max(run.began, at), how
        story.over.append(run)


def _give_up(story: RunStory, at: float) -> None:
    for name in list(story.running):
        _end(story, name, at, "given up")
