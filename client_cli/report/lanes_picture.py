"""The lanes of all peers as pictures: a strip a peer, and the clock below them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from client_cli.report.axes import seconds_text, seconds_ticks
from client_cli.report.lanes import Doing, Lane, WorkTime
from client_cli.report.signs import drawing
from client_cli.report.svg import Svg, element, label, percent, picture
from client_cli.text.render import duration_text

HEIGHT, BASE = 26, 23
NAMED_FROM = 0.02
"""A span that is so wide a share of the strip bears its name."""
TALL: dict[Doing, int] = {
    "train": 20, "exchange": 20, "now": 20, "lost": 20, "wait": 4, "ready": 4, "behind": 9, "paused": 12,
    "ran": 20, "failed": 20, "copy": 20, "stuck": 5,
}  # fmt: skip
"""Heights tell them apart as well as colours and patterns."""
Words = Mapping[Doing, str]
"""The meaning of each look in a job of this kind, in the order of the legend."""


@dataclass(frozen=True)
class Strip:
    """One peer's lane, drawn."""

    peer: str
    svg: Svg
    said: str


@dataclass(frozen=True)
class Lanes:
    """All of them."""

    strips: list[Strip]
    clock: Svg
    legend: list[tuple[Svg, str]]


def draw(found: list[Lane], time: WorkTime, words: Words) -> Lanes:
    """The picture of these lanes."""
    seen = {span.doing for lane in found for span in [*lane.spans, *lane.over]}
    return Lanes(
        [Strip(lane.peer, _strip(lane, time, words), said_of(lane, words)) for lane in found],
        _clock(time),
        [(swatch(doing), word) for doing, word in words.items() if doing in seen],
    )


def sums_of(lane: Lane) -> dict[Doing, float]:
    """Seconds by what the peer did."""
    sums: dict[Doing, float] = {}
    for span in [*lane.spans, *lane.over]:
        sums[span.doing] = sums.get(span.doing, 0.0) + span.lasted
    return sums


def said_of(lane: Lane, words: Words) -> str:
    """The lane in a sentence."""
    sums = sums_of(lane)
    parts = [f"{word} {duration_text(sums[doing])}" for doing, word in words.items() if sums.get(doing, 0.0) > 0]
    gone = ", lost in the end" if lane.lost_at and not _came_back(lane) else ""
    return f"{lane.peer}: {', '.join(parts) or 'nothing yet'}{gone}"


def swatch(doing: Doing) -> Svg:
    """For the legend."""
    bar = element("rect", class_=f"look {doing}", y=BASE - TALL[doing] - 4, width=22, height=TALL[doing])
    return element("svg", bar, class_="swatch", width=22, height=20, aria_hidden="true")


def _strip(lane: Lane, time: WorkTime, words: Words) -> Svg:
    whole = time.total or 1.0
    drawn = [element("line", class_="base", x1=0, x2="100%", y1=BASE + 0.5, y2=BASE + 0.5)]
    for span in [*lane.spans, *lane.over]:
        share = span.lasted / whole
        if share <= 0:
            continue
        tall = TALL[span.doing] / span.rows
        drawn.append(
            element(
                "rect", class_=f"look {span.doing}", x=percent(span.began / whole), width=percent(max(share, 0.0004)),
                y=BASE - (span.row + 1) * tall, height=tall,
            )
        )  # fmt: skip
    drawn += [
        label(span.name, class_="on-look", x=percent((span.began + span.lasted / 2) / whole), y=BASE - 6,
              text_anchor="middle")
        for span in lane.spans
        if span.name and span.lasted / whole >= NAMED_FROM
    ]  # fmt: skip
    drawn += [element("line", class_="cut", x1=percent(at / whole), x2=percent(at / whole), y1=0, y2=BASE)
              for at in time.cuts]  # fmt: skip
    drawn += [
        element(
            "svg", element("g", drawing("lost"), transform=f"translate(0 {BASE - 10})"), class_="mark bad",
            x=percent(at / whole), overflow="visible",
        )
        for at in lane.lost_at
    ]  # fmt: skip
    return picture(*drawn, said=said_of(lane, words), class_="strip", width="100%", height=HEIGHT)


def _clock(time: WorkTime) -> Svg:
    whole = time.total or 1.0
    ticks = [
        label(seconds_text(at), class_="tick", x=percent(at / whole), y=13,
              text_anchor="start" if at == 0 else "end" if at / whole > 0.96 else "middle")
        for at in seconds_ticks(time.total or 1.0)
    ]  # fmt: skip
    return element("svg", *ticks, class_="clock", width="100%", height=18, aria_hidden="true")


def _came_back(lane: Lane) -> bool:
    return any(span.began >= lane.lost_at[-1] for span in lane.spans)
