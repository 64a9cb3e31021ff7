"""From what a tracker tells to HTML: its operator's page, and the one that a browser finds at its public port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from axonp2p.errors import error_classes
from axonp2p.identity.peer_id import short
from axonp2p.plain_text import bytes_text, plural
from tracker.api.status import OtherState
from tracker.page.overview import BARS, Overview, bars, levels

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
Local = Callable[[float], datetime]
_HEIGHT, _THIN = 46.0, 0.6


@dataclass(frozen=True)
class Chart:
    """One picture of the last day, a bar for each quarter of an hour; None: before the start."""

    name: str
    unit: str
    values: Sequence[float | None]

    @property
    def most(self) -> float:
        """The largest, which fills the height."""
        return max((value for value in self.values if value is not None), default=0.0)

    @property
    def label(self) -> str:
        """The picture in words."""
        last = next((value for value in reversed(self.values) if value is not None), 0.0)
        return f"{self.name}, {self.unit}: at most {self.most:,.4g}, {last:,.4g} in the last one"

    @property
    def bars(self) -> list[tuple[int, float, float]]:
        """Place, top and height of each; a thin line for nothing."""
        return [
            (place, round(_HEIGHT - height, 2), round(height, 2))
            for place, value in enumerate(self.values)
            if value is not None
            for height in [max(_THIN, _HEIGHT * value / self.most) if value else _THIN]
        ]


@cache
def _environment() -> Environment:
    from axonp2p.transport.http.page_templates import page_templates

    filters: dict[str, Callable[..., object]] = {
        "bytes": bytes_text,
        "count": lambda count: f"{count:,.0f}",
        "span": span_text,
        "state": state_of,
        "short": short,
        "plural": plural,
    }
    return page_templates(TEMPLATES, filters)


def operators_page(overview: Overview, local: Local) -> str:
    """The whole page. `local` turns Unix seconds into the wall's clock."""
    samples, now = overview.samples, overview.now
    quarter = "per 15 min"
    charts = [
        Chart("Peers", "announced", levels(samples, "alive", now)),
        Chart("Announces", quarter, bars(samples, "announces", now)),
        Chart("Queries", quarter, bars(samples, "queries", now)),
        Chart("Refusals", quarter, bars(samples, "refusals", now)),
        Chart("Receipts", f"new {quarter}", bars(samples, "receipts", now)),
    ]
    if overview.relay is not None:
        carried = [None if one is None else one / 1e6 for one in bars(samples, "relay_bytes", now)]
        charts.append(Chart("Relayed", f"MB {quarter}", carried))
    errors = {code: " ".join((kind.__doc__ or "").split()) for code, kind in error_classes().items()}
    hours = [local(now - hours * 3600).strftime("%H:%M") for hours in (24, 18, 12, 6)]
    template = _environment().get_template("operator.html")
    return template.render(one=overview, charts=charts, errors=errors, hours=hours, local=local, width=BARS)


def landing_page(tracker: str, version: str, address: str, trouble: str, alive: int) -> str:
    """The page that the public may see: it has nothing that `/v1/health` does not say."""
    template = _environment().get_template("landing.html")
    return template.render(tracker=tracker, version=version, address=address, trouble=trouble, alive=alive)


def span_text(seconds: float) -> str:
    """Such as "40 s", "12 min", "3 h 20 min", "12 days"."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} days"


def state_of(other: OtherState) -> str:
    """Of another tracker, in words."""
    if other.lives:
        return "answers"
    return "never answered" if other.answered_s_ago is None else f"silent for {span_text(other.answered_s_ago)}"
