"""From what a tracker tells to HTML: its operator's page, and the one that a browser finds at its public port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
_HEIGHT = 46.0


@cache
def _environment() -> Environment:
    # Loaded when somebody first looks: a tracker at which nobody does saves the memory.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "bytes": bytes_text,
        "count": lambda count: f"{count:,.0f}",
        "span": span_text,
        "state": state_of,
        "points": points,
        "short": short,
        "plural": lambda count, noun: plural(count, noun),
    }
    return environment


def operators_page(overview: Overview, local: Local) -> str:
    """The whole page. `local` turns Unix seconds into the wall's clock."""
    samples, now = overview.samples, overview.now
    charts = [
        ("Peers", "announced at the end of each quarter of an hour", levels(samples, "alive", now)),
        ("Announces", "a quarter of an hour", bars(samples, "announces", now)),
        ("Queries", "a quarter of an hour", bars(samples, "queries", now)),
        ("Refusals", "a quarter of an hour", bars(samples, "refusals", now)),
        ("Receipts", "new in the ledger, a quarter of an hour", bars(samples, "receipts", now)),
    ]
    if overview.relay is not None:
        carried = [None if one is None else one / 1e6 for one in bars(samples, "relay_bytes", now)]
        charts.append(("Relayed", "MB, a quarter of an hour", carried))
    errors = {code: " ".join((kind.__doc__ or "").split()) for code, kind in error_classes().items()}
    hours = [local(now - hours * 3600).strftime("%H:%M") for hours in (24, 18, 12, 6)]
    template = _environment().get_template("operator.html")
    return template.render(one=overview, charts=charts, errors=errors, hours=hours, local=local, width=BARS)


def landing_page(tracker: str, version: str, address: str, trouble: str, alive: int) -> str:
    """What the public may see: nothing that `/v1/health` does not say."""
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


def points(values: Sequence[float | None]) -> list[tuple[int, float, float]]:
    """Place, top and height of each bar in a picture of `_HEIGHT`; the largest fills it. None has no bar."""
    most = max((value for value in values if value is not None), default=0.0)
    return [
        (place, round(_HEIGHT - height, 2), round(height, 2))
        for place, value in enumerate(values)
        if value is not None and (height := max(0.6, _HEIGHT * value / most) if most and value else 0.6)
    ]
