"""From a job's events to its story, one event after the other. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from axonp2p.client.events import events
from client_cli.report.kind_report import KindReport, report_of
from client_cli.report.story import CurveMark, Life, MarkKind, Story, StoryLine
from client_cli.text.event_text import end_line, line_of


def fold(happened: Iterable[events.Event], kind: str, before: Story | None = None) -> Story:
    """The story that these events of a job of that kind tell, or how the one before them continues."""
    report = report_of(kind)
    story: Story = report.story() if before is None else before
    for event in happened:
        if not event.passing:
            _take(story, event, kind, report)
    return story


_MARKS: dict[type[events.Event], MarkKind] = {
    events.PeerLost: "lost",
    events.PeerHandedBack: "handed back",
    events.PeerPaused: "paused",
    events.PeerResumed: "resumed",
    events.JobWaiting: "waits",
    events.JobGoesOn: "goes on",
    events.JobPaused: "over",
    events.JobCancelled: "over",
    events.JobEndedBadly: "over",
}


def _take(story: Story, event: events.Event, kind: str, report: KindReport[Any]) -> None:
    report.take(story, event)
    _note_life(story, event, kind)
    _note_peer(story, event)
    match event:
        case events.JobSubmitted():
            story.sent_at = 0.0
        case events.BundleSent():
            story.sent_at = event.at
        case events.RttsGuessed(seconds=seconds):
            story.among = seconds
        case events.JobWaiting(peers=names):
            story.waits_for = list(names)
        case events.JobGoesOn():
            story.waits_for = []
        case events.JobFinished() | events.JobPaused() | events.JobCancelled() | events.JobEndedBadly():
            story.waits_for = []
    story.last = event
    _note_words(story, event, kind, report)


def _note_life(story: Story, event: events.Event, kind: str) -> None:
    if isinstance(event, events.JobSubmitted):
        kept = event.resumed_from_round
        again = bool(story.lives)
        story.lives.append(Life(event.at, event.at, kept))
        for peer in story.peers.values():
            if peer.state != "lost":
                peer.state, peer.why, peer.samples_per_second = "lost", "the job continued without it", None
                peer.gone_at = event.at
        story.waits_for = []
        if again:
            story.marks.append(CurveMark(event.at, kept, "again", "", line_of(event, kind)))
    elif story.lives:
        story.lives[-1].ended = max(story.lives[-1].ended, event.at)
    else:
        story.lives.append(Life(event.at, event.at, 0))


def _note_peer(story: Story, event: events.Event) -> None:
    match event:
        case events.RttMeasured(seconds=seconds):
            story.distances.update(seconds)
        case events.PeerHired(peer=name):
            peer = story.peer(name)
            peer.state, peer.why, peer.rtt_s = "hired", "", story.distances.get(name)
        case events.PeerResumed(peer=name):
            peer = story.peer(name)
            if peer.state == "behind":
                peer.why = "catching up"
            else:
                peer.state, peer.why = "works", ""
        case events.PeerPaused(peer=name, reason=reason):
            peer = story.peer(name)
            peer.state, peer.why = "paused", reason
        case events.PeerLost(peer=name, reason=reason):
            peer = story.peer(name)
            peer.state, peer.why, peer.samples_per_second = "lost", reason, None
            peer.gone_at = event.at
        case events.JobFinished(credits=credits):
            for name, amount in credits.items():
                story.peer(name).credits = amount
    if isinstance(event, _TURNS):
        story.turns.append(event)


_TURNS = (
    events.JobSubmitted,
    events.PeerHired,
    events.PeerPaused,
    events.PeerResumed,
    events.PeerLost,
    events.JobWaiting,
    events.JobGoesOn,
)


def _note_words(story: Story, event: events.Event, kind: str, report: KindReport[Any]) -> None:
    mark = _MARKS.get(type(event)) or report.marks.get(type(event))
    sentence = line_of(event, kind) or end_line(event, kind)
    if sentence:
        story.said.append(StoryLine(event.at, sentence))
    if mark is None:
        return
    # An event that names its round speaks of that one: an exchange is chosen for the round that comes.
    about = getattr(event, "round", None)
    number = about if isinstance(about, int) and mark != "over" else story.done
    story.marks.append(CurveMark(event.at, number, mark, getattr(event, "peer", ""), sentence))
