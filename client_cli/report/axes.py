"""Where the ticks of an axis stand, and what they say. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

LOG_FROM = 30.0
"""A curve whose largest value is so many times its least is drawn on a logarithmic axis."""


@dataclass(frozen=True)
class Axis:
    """From values to shares of the axis' length, 0 to 1."""

    least: float
    most: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Where it stands; what is beyond an end stands at the end."""
        if self.logarithmic:
            value = max(value, self.least)
            share = math.log(value / self.least) / math.log(self.most / self.least)
        else:
            share = (value - self.least) / (self.most - self.least)
        return min(1.0, max(0.0, share))


def linear(least: float, most: float, wanted: int = 5) -> Axis:
    """An axis whose ends are ticks: multiples of 1, 2 or 5 and a power of ten."""
    if not most > least:
        pad = abs(least) * 0.1 or 1.0
        least, most = least - pad, most + pad
    step = _step((most - least) / max(1, wanted - 1))
    first, last = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
    ticks = tuple(_rounded(index * step, step) for index in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def for_curve(values: list[float]) -> Axis:
    """The axis that fits a curve: logarithmic where all values are positive and far apart."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    least, most = min(finite), max(finite)
    if least > 0 and most / least >= LOG_FROM:
        return logarithmic(least, most)
    return linear(least, most)


def logarithmic(least: float, most: float) -> Axis:
    """An axis from one power of ten, or 3 times one, to another."""
    marks = [mark for power in range(-300, 301) for mark in (10.0**power, 3 * 10.0**power)]
    first = max((index for index, mark in enumerate(marks) if mark <= least * (1 + 1e-9)), default=0)
    last = min((index for index, mark in enumerate(marks) if mark >= most * (1 - 1e-9)), default=len(marks) - 1)
    last = max(last, first + 1)
    ticks = marks[first : last + 1]
    if len(ticks) > 7:
        ticks = [mark for mark in ticks if f"{mark:e}".startswith("1")]
    thin = ticks[:: -(-len(ticks) // 7)]
    return Axis(marks[first], marks[last], tuple(thin), logarithmic=True)


def counted(most: int, wanted: int = 8) -> list[int]:
    """Whole numbers from 1 up to `most`, as ticks of rounds."""
    step = next(part * 10**power for power in range(20) for part in (1, 2, 5) if most / (part * 10**power) <= wanted)
    found = list(range(step, most + 1, step))
    return ([] if step == 1 else [1]) + found


def seconds_ticks(total: float, wanted: int = 6) -> list[float]:
    """Round moments from 0 to `total`: seconds, minutes, hours."""
    steps = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
    step = next((one for one in steps if total / one <= wanted), 86400 * math.ceil(total / wanted / 86400))
    return [index * step for index in range(int(total / step + 1e-9) + 1)]


def seconds_text(seconds: float) -> str:
    """0.5 s, 40 s, 2 min, 1 h 30."""
    if seconds < 60:
        return f"{seconds:g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min" if not rest else f"{minutes}:{rest:02}"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h" if not minutes else f"{hours} h {minutes:02}"


def _step(raw: float) -> float:
    power = 10.0 ** math.floor(math.log10(raw))
    return next(part * power for part in (1, 2, 2.5, 5, 10) if part * power >= raw * (1 - 1e-9))


def _rounded(value: float, step: float) -> float:
    return round(value, max(0, 2 - math.floor(math.log10(step))))
