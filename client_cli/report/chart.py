"""A chart over rounds: axes, lines, bars and marks at any width, with letters that keep their size. Pure.

A mark in percent of the width is placed by the browser. Lines are drawn in a box of 1000 x 1000 that is stretched
to the plot, their width is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from client_cli.report.axes import Axis, counted
from client_cli.report.signs import GRADES, drawing
from client_cli.report.story import CurveMark
from client_cli.report.svg import Svg, element, label, percent

TOP, BOTTOM, LEFT = 20, 24, 52
BOX = 1000
MOST_POINTS = 1500
MOST_MARKS = 60
SIGN_APART = 14
_IMPORTANT = ("lost", "waits", "again", "redone", "paused", "behind", "handed back", "joined")


@dataclass(frozen=True)
class Curve:
    """One line: a value a round (numbers from 1)."""

    name: str
    points: Sequence[tuple[int, float]]
    dashed: bool = False


def place_of(number: float, rounds: int) -> float:
    """Where the end of that round stands, as a share of the width; the job's beginning stands at 0."""
    return min(1.0, number / max(1, rounds))


def chart(
    *, said: str, rounds: int, axis: Axis, axis_texts: Sequence[str], inside: Sequence[Svg], height: int, marks: Svg
) -> Svg:
    """The whole picture; `inside` is drawn between the grid and the marks."""
    tall = height - TOP - BOTTOM
    ys = [(1 - axis.place(tick)) * tall + TOP for tick in axis.ticks]
    grid = [element("line", class_="grid", x1=0, x2="100%", y1=y, y2=y) for y in ys]
    numbers = [
        label(text, class_="tick", x=LEFT - 8, y=y + 4, text_anchor="end")
        for text, y in zip(axis_texts, ys, strict=True)
    ]
    below = [
        label(
            f"{number:,}", class_="tick", x=percent(place_of(number, rounds)), y=TOP + tall + 17, text_anchor="middle"
        )
        for number in counted(rounds)
    ]
    # Both axes are named in the room left of the plot, where neither ticks nor signs stand.
    names = [label("round", class_="tick", x=LEFT - 8, y=TOP + tall + 17, text_anchor="end")]
    if axis.logarithmic:
        names.append(label("log scale", class_="tick", x=0, y=9))
    plot = element("svg", *inside, marks, y=TOP, width="100%", height=tall, overflow="visible")
    return element(
        "div",
        element("svg", *numbers, *names, width=LEFT, height=height, aria_hidden="true"),
        element("svg", *grid, plot, *below, class_="plot", height=height, aria_hidden="true"),
        class_="chart", role="img", aria_label=said,
    )  # fmt: skip


def lines(curves: Sequence[Curve], axis: Axis, rounds: int) -> list[Svg]:
    """The curves, the first one solid and heavy; a single point is a dot."""
    found = []
    for index, curve in enumerate(curves):
        points = _thinned(curve.points)
        spots = [(BOX * place_of(number, rounds), BOX * (1 - axis.place(value))) for number, value in points]
        if not spots:
            continue
        look = f"curve curve-{index}" + (" dashed" if curve.dashed else "")
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        if len(spots) == 1:
            drawn = f"{drawn} {spots[0][0] + 0.1:.1f},{spots[0][1]:.1f}"
            look += " dot"
        found.append(stretched(element("polyline", points=drawn, class_=look)))
    return found


def bars(values: Sequence[tuple[int, float]], axis: Axis, rounds: int) -> list[Svg]:
    """A bar a round, from 0."""
    width = BOX / max(1, rounds)
    gap = width * (0.18 if rounds <= 150 else 0)
    path = "".join(
        f"M{BOX * place_of(number, rounds) - width + gap / 2:.2f} {BOX}V{BOX * (1 - axis.place(value)):.1f}"
        f"h{width - gap:.2f}V{BOX}z"
        for number, value in values
    )
    return [stretched(element("path", d=path, class_="bars"))] if path else []


def stretched(inside: Svg) -> Svg:
    """A drawing in the box of 1000 x 1000, stretched to the plot."""
    return element(
        "svg", inside, width="100%", height="100%", viewBox=f"0 0 {BOX} {BOX}", preserveAspectRatio="none",
        overflow="visible",
    )  # fmt: skip


def marks_on(marks: Sequence[CurveMark], rounds: int) -> Svg:
    """The signs of what happened, on the round in which it did; with very many, those that tell most."""
    by_round: dict[int, list[CurveMark]] = {}
    for one in _shown(marks):
        by_round.setdefault(one.round, []).append(one)
    drawn = [_signs_of(number, together, rounds) for number, together in by_round.items()]
    return element("g", *drawn, class_="marks") if drawn else Svg("")


def _signs_of(number: int, together: Sequence[CurveMark], rounds: int) -> Svg:
    """Side by side over one line."""
    first = -SIGN_APART * (len(together) - 1) / 2
    signs = [
        element(
            "g", drawing(one.kind), class_=f"mark {GRADES[one.kind]}",
            transform=f"translate({first + SIGN_APART * index:.1f} -12)",
        )
        for index, one in enumerate(together)
    ]  # fmt: skip
    line = element("line", class_=f"mark-line mark {GRADES[together[0].kind]}", x1=0, x2=0, y1=-5, y2="100%")
    return element("svg", line, *signs, x=percent(place_of(number + 0.5, rounds)), overflow="visible")


def _shown(marks: Sequence[CurveMark]) -> list[CurveMark]:
    # One sign of a kind a round: five peers that are lost at once are one cross.
    once = list({(one.kind, one.round): one for one in marks if one.kind != "over"}.values())
    if len(once) <= MOST_MARKS:
        return once
    kept = [one for kind in _IMPORTANT for one in once if one.kind == kind][:MOST_MARKS]
    return sorted(kept, key=lambda one: one.round)


def _thinned(points: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    """Of very many points, the least and the largest of each stretch."""
    if len(points) <= MOST_POINTS:
        return points
    stretch = -(-len(points) // (MOST_POINTS // 2))
    found: list[tuple[int, float]] = []
    for first in range(0, len(points), stretch):
        part = points[first : first + stretch]
        ends = {min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])}
        found += sorted(ends)
    return found
