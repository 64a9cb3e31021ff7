"""Which calls each peer made when: one lane a peer, over the time at work; a row for each core that was busy. Pure."""

from __future__ import annotations

from client_cli.map.story import MapStory
from client_cli.map.stretches import CallStretch
from client_cli.report.lanes import Doing, Lane, Span, WorkTime, add_paused

_LETTER = 0.02
"""Of the lane's width, on a phone."""


def lanes(story: MapStory, time: WorkTime, now: float) -> list[Lane]:
    """A lane for every peer that was hired, in the order of their hiring."""
    last = max(now, story.lives[-1].ended) if story.lives else now
    found = {name: Lane(name, [], [], []) for name in story.peers}
    for name, chunks in story.chunks.items():
        if lane := found.get(name):
            rows = len(chunks.rows)
            lane.spans.extend(_span(one, time, row, rows) for row, ones in enumerate(chunks.rows) for one in ones)
            lane.spans.sort(key=lambda span: span.began)
    add_paused(story.turns, found, time, last)
    for stuck in story.stuck:
        if lane := found.get(stuck.peer):
            began, ended = time.at(stuck.began), time.at(max(stuck.began, stuck.ended or last))
            lane.over.append(Span(began, ended, "stuck"))
    return list(found.values())


def _span(one: CallStretch, time: WorkTime, row: int, rows: int) -> Span:
    doing: Doing = "failed" if one.failed else "copy" if one.copied else "ran"
    began, ended = time.at(one.began), time.at(one.ended)
    name = f"item {one.first}" if one.calls == 1 else f"{one.calls:,} calls"
    wide = (ended - began) >= time.total * _LETTER * (len(name) + 1)
    return Span(began, ended, doing, name if wide and rows == 1 else "", row, rows)
