"""Which copy each peer ran when: one lane a peer, a span an attempt, over the time at work. Pure."""

from __future__ import annotations

from axonp2p.client.events import events
from client_cli.report.lanes import Doing, Lane, Span, WorkTime
from client_cli.run.story import CopyRun, HowEnded, RunStory

MOST_SPANS = 4000
"""In all lanes together: with more, the last attempts are drawn."""
_LOOKS: dict[HowEnded, Doing] = {"runs": "now", "good": "ran", "failed": "failed", "given up": "lost"}


def lanes(story: RunStory, time: WorkTime, now: float) -> list[Lane]:
    """A lane for every peer that was hired, in the order of their hiring."""
    last = max(now, story.lives[-1].ended) if story.lives else now
    found = {name: Lane(name, [], [], []) for name in story.peers}
    for run in [*story.over, *story.running.values()][-MOST_SPANS:]:
        if lane := found.get(run.peer):
            lane.spans.append(_span(run, time, last))
    _paused(story, found, time, last)
    for lane in found.values():
        lane.spans.sort(key=lambda span: span.began)
    return list(found.values())


def _span(run: CopyRun, time: WorkTime, last: float) -> Span:
    ended = max(run.began, last if run.how == "runs" else run.ended)
    return Span(time.at(run.began), time.at(ended), _LOOKS[run.how], str(run.index))


def _paused(story: RunStory, found: dict[str, Lane], time: WorkTime, last: float) -> None:
    since: dict[str, float] = {}

    def over(name: str, at: float) -> None:
        began = since.pop(name, None)
        if began is not None and name in found:
            found[name].over.append(Span(time.at(began), time.at(max(began, at)), "paused"))

    for event in story.turns:
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
