"""Which copy each peer ran when: one lane a peer, a span an attempt, over the time at work. Pure."""

from __future__ import annotations

from client_cli.report.lanes import Doing, Lane, Span, WorkTime, add_paused
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
    add_paused(story.turns, found, time, last)
    for lane in found.values():
        lane.spans.sort(key=lambda span: span.began)
    return list(found.values())


def _span(run: CopyRun, time: WorkTime, last: float) -> Span:
    ended = max(run.began, last if run.how == "runs" else run.ended)
    return Span(time.at(run.began), time.at(ended), _LOOKS[run.how], str(run.index))
