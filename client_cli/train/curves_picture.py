"""Curves over rounds: the loss with its held-out twin, every other held-out metric by itself, bytes a round. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from axonp2p.plain_text import bytes_text
from client_cli.report.axes import Axis, for_curve, linear
from client_cli.report.chart import Curve, bars, chart, lines, marks_on
from client_cli.report.signs import WORDS, sign
from client_cli.report.svg import Svg, element, label
from client_cli.text.render import metric_text, percent_text
from client_cli.train.story import TrainStory

LOSS_HEIGHT, METRIC_HEIGHT, BYTES_HEIGHT = 270, 150, 190
MOST_METRICS = 4
SHOWN_BESIDE = 4.0
"""The dense baseline is drawn as a line when it is not more than so many times as high as the bars."""


@dataclass(frozen=True)
class Drawn:
    """A picture with its title and the curves' names: (name, dashed)."""

    title: str
    svg: Svg
    names: tuple[tuple[str, bool], ...] = ()


def loss(story: TrainStory) -> Drawn:
    """Training loss and, dashed, held-out loss."""
    trained = [(one.round + 1, one.loss) for one in story.rounds if math.isfinite(one.loss)]
    curves = [Curve("training loss", trained)]
    if held_out := _series(story, "loss"):
        curves.append(Curve("held-out loss", held_out, dashed=True))
    return _drawn("Loss", curves, story, LOSS_HEIGHT, _loss_said(story))


def metrics(story: TrainStory) -> list[Drawn]:
    """The other held-out metrics, a small chart each."""
    names = sorted({name for one in story.rounds for name in one.metrics} - {"loss"})[:MOST_METRICS]
    found = []
    for name in names:
        points = _series(story, name)
        said = f"Held-out {metric_text(name, points[-1][1])} after round {points[-1][0]}." if points else ""
        found.append(_drawn(f"Held-out {name}", [Curve(name, points)], story, METRIC_HEIGHT, said, name))
    return found


def bytes_a_round(story: TrainStory) -> Drawn:
    """The bytes that the peers sent each other in each round, drawn from 0, beside those of a dense exchange."""
    sent = [(one.round + 1, float(one.round_bytes)) for one in story.rounds]
    dense = max((one.dense_bytes for one in story.rounds), default=0)
    most = max((value for _, value in sent), default=0.0)
    beside = 0 < dense <= SHOWN_BESIDE * most
    axis = linear(0, max(most, dense if beside else 0) * 1.02 or 1.0)
    inside = bars(sent, axis, _planned(story))
    if beside:
        curve = Curve("dense", [(one.round + 1, float(one.dense_bytes)) for one in story.rounds], dashed=True)
        inside += [
            element("g", *lines([curve], axis, _planned(story)), class_="baseline"),
        ]
    elif dense:
        inside.append(label(f"dense: {_times(dense / max(1.0, most))} higher ↑", class_="note", x="100%", y=-6,
                            text_anchor="end"))  # fmt: skip
    texts = [bytes_text(tick) for tick in axis.ticks]
    svg = chart(
        said=bytes_said(story), rounds=_planned(story), axis=axis, axis_texts=texts, inside=inside,
        height=BYTES_HEIGHT, marks=Svg(""),
    )  # fmt: skip
    return Drawn("Bytes a round", svg)


def bytes_said(story: TrainStory) -> str:
    """The picture in a sentence."""
    sent, dense = total_bytes(story)
    if not sent:
        return "No bytes were exchanged among the peers yet."
    told = f"The peers sent each other {bytes_text(sent)}; a dense exchange after every step would have been"
    newest = story.newest
    on_the_wire = f" the {bytes_text(newest.wire_bytes)}" if newest else " all bytes"
    beside = f"The bundle, weights that travel whole and checks are not in this ratio, but in{on_the_wire} on the wire."
    return f"{told} {bytes_text(dense)}, {_times(dense / sent)} as much. {beside}"


def total_bytes(story: TrainStory) -> tuple[int, int]:
    """Among the peers in all rounds: sent, and what a dense exchange would have sent."""
    return sum(one.round_bytes for one in story.rounds), sum(one.dense_bytes for one in story.rounds)


def legend_of_marks(story: TrainStory) -> list[tuple[Svg, str]]:
    """Every sign that stands on the curves, with its word."""
    kinds = dict.fromkeys(mark.kind for mark in story.marks if mark.kind != "over")
    return [(sign(kind), WORDS[kind]) for kind in kinds]


def _times(factor: float) -> str:
    return f"{factor:,.0f} times" if factor >= 10 else f"{factor:.1f} times"


def _planned(story: TrainStory) -> int:
    return max(story.rounds_planned, story.done, 1)


def _series(story: TrainStory, name: str) -> list[tuple[int, float]]:
    points = [(one.round + 1, one.metrics[name]) for one in story.rounds if name in one.metrics]
    return [(number, value) for number, value in points if math.isfinite(value)]


def _loss_said(story: TrainStory) -> str:
    if not story.rounds:
        return "No round is done yet."
    first, last = story.rounds[0], story.rounds[-1]
    if first is last:
        return f"After round {last.round + 1} the training loss is {last.loss:.4g}."
    since = f"Training loss from {first.loss:.4g} after round {first.round + 1}"
    return f"{since} to {last.loss:.4g} after round {last.round + 1} of {_planned(story)}."


def _drawn(title: str, curves: Sequence[Curve], story: TrainStory, height: int, said: str, name: str = "") -> Drawn:
    axis = for_curve([value for curve in curves for _, value in curve.points])
    svg = chart(
        said=said or "No round is done yet.",
        rounds=_planned(story),
        axis=axis,
        axis_texts=_texts(axis, name),
        inside=lines(curves, axis, _planned(story)),
        height=height,
        marks=marks_on(story.marks, _planned(story)),
    )
    return Drawn(title, svg, tuple((curve.name, curve.dashed) for curve in curves))


def _texts(axis: Axis, name: str) -> list[str]:
    if name == "accuracy" and axis.least >= 0 and axis.most <= 1:
        return [percent_text(tick).replace(".0 %", " %") for tick in axis.ticks]
    return [f"{tick:.4g}" for tick in axis.ticks]
