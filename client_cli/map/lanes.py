"""Which calls each peer made when: one lane a peer, a span a chunk, over the time at work. Pure."""

from __future__ import annotations

from client_cli.map.story import MapStory
from client_cli.report.lanes import Lane, Span, WorkTime, add_paused


def lanes(story: MapStory, time: WorkTime, now: float) -> list[Lane]:
    """A lane for every peer that was hired, in the order of their hiring."""
    last = max(now, story.lives[-1].ended) if story.lives else now
    found = {name: Lane(name, [], [], []) for name in story.peers}
    for chunk in story.chunks:
        if lane := found.get(chunk.peer):
            name = str(chunk.first) if chunk.calls == 1 else f"{chunk.first}+"
            lane.spans.append(Span(time.at(chunk.began), time.at(chunk.ended), "ran", name))
    add_paused(story.turns, found, time, last)
    for lane in found.values():
        lane.spans.sort(key=lambda span: span.began)
    return list(found.values())
