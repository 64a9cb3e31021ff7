"""The text of one kind of job in a terminal, beside the text for all jobs: its lines, its words and its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from axonp2p.client.events.events import Event, JobFinished
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.errors import AxonError
from axonp2p.jobs.kinds import load
from axonp2p.plain_text import plural
from client_cli.kinds import STORIES
from client_cli.text.render import credits_text

Command = Callable[..., str]
"""Spells a command of ours: ("resume", "digits-7f3a") -> "axon resume digits-7f3a"."""


@dataclass(frozen=True)
class Shown:
    """The content of the bar and of the lines below it."""

    doing: str = ""
    """Empty before there is a job."""
    done: float = 0.0
    """Units of work: rounds, with the fraction of the one that runs; copies."""
    units: int = 0
    kept: float = 0.0
    """Those that were done when this life of the job began."""
    headline: str = ""
    """Beside the bar."""
    facts: str = ""
    """Below it: what changes once a round, or with a copy."""
    peers: str = ""
    """Below that: how fast each peer is, or what it runs."""
    failed: int = 0
    """Units whose result is that they failed."""
    runs: Mapping[str, int] = field(default_factory=dict)
    """Which unit each peer works on, where they work on different ones."""
    paused: Mapping[str, str] = field(default_factory=dict)
    """The peers that stand still, and why."""
    waits: bool = False
    """Whether the job waits for them."""
    starting: tuple[str, ...] = ()
    """Peers whose workers start: they are hired, and nothing was heard of their work yet."""
    sent_at: float = 0.0
    """When the bundle was with the peers, as Unix seconds; 0: it is not."""
    at_work: bool = False
    """Whether the work has begun: what is looked for meanwhile is no news of it."""
    slow: str = ""
    """The line about peers whose workers take long to start."""
    search: str = ""
    """Which peers are looked for while others work."""


def started(shown: Shown, peer: str) -> Shown:
    """This peer's worker has started, or is waited for no more."""
    return replace(shown, starting=tuple(name for name in shown.starting if name != peer))


@dataclass(frozen=True)
class KindLines:
    """The lines for events: those of its own kind, and those of all jobs that it tells in its own words."""

    stays: Callable[[Event], str]
    """The line that stays on the screen; empty for none."""
    stays_without_bar: Callable[[Event], str]
    """One more, where no bar shows it."""
    end: Callable[[Event], str]
    """The last one, of `JobFinished` and `JobPaused`; empty for others."""
    bar: Callable[[Shown, Event], Shown]
    """The content of the bar after an event."""
    again: Callable[[Event, Event], str | None] = lambda _before, _event: None
    """The line of an event after the last one of its type that had a line: shortly what changed, empty where nobody
    cares; None: as if it were the first."""


@dataclass(frozen=True)
class KindWords:
    """How a job stands, in words. A form with two numbers is given those that are done and all: rounds, copies."""

    unit: str
    """"round": what is counted."""
    after: Callable[[int, int], str]
    """Where it stopped: "after round 3 of 20"."""
    during: Callable[[int, int], str]
    """Where it is: "in round 4 of 20"."""
    at_work: Callable[[JobRecord, int], str]
    """The work of so many peers: "trains round 4 of 20 on 3 peers"."""
    finished: Callable[[JobRecord], str]
    pausing: str
    """When it stops after `axon pause`, or `axon stop`."""
    nothing_yet: str
    """Before the first unit is done, and kept."""
    result: str
    """The noun for the result that `axon fetch` brings: "weights"."""
    fetching: str
    """The effect of `axon fetch`, in a sentence."""


Failure = Callable[[JobFinished, Sequence[Event], Command], AxonError | None]
"""Why a job is no success though it has finished."""


@dataclass(frozen=True)
class KindEnd:
    """The texts and data about a finished job, made from its last event and all events that were told."""

    summary: Callable[[JobFinished, Sequence[Event]], str]
    data: Callable[[JobFinished, Sequence[Event]], dict[str, Any]]
    failure: Failure


@dataclass(frozen=True)
class KindText:
    """All of it."""

    lines: KindLines
    words: KindWords
    end: KindEnd
    facts: Callable[[dict[str, Any]], dict[str, str]]
    """Of a job's facts (`job_text.job_data`): those that `axon status` shows."""
    so_far: Callable[[dict[str, Any]], str]
    """The same in a few words, for `axon jobs`."""


def peers_line(event: JobFinished) -> str:
    """Of a summary."""
    gone = f", {plural(len(event.lost), 'peer')} lost ({' '.join(event.lost)})" if event.lost else ""
    return f"  peers    {' '.join(event.peers)}{gone}"


def credits_line(event: JobFinished) -> str:
    """Of a summary."""
    paid = f"{credits_text(sum(event.credits.values()))} in all"
    return f"  credits  {paid}; {plural(event.receipts, 'receipt')} of this run in the ledger"


def text_of(kind: str) -> KindText:
    """The text of that kind of job in a terminal."""
    text: KindText = load(STORIES[kind].text)
    return text
