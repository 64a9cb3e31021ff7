"""From what the daemon tells to the page's HTML. Jinja2 and the templates are loaded when somebody first looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axonp2p.plain_text import plural
from peer_daemon.control.status import HistoryTold, Status
from peer_daemon.page import picture, words
from peer_daemon.page.headline import banners, headline

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATES = Path(__file__).parent / "templates"
HAPPENINGS_SHOWN = 30
PAUSES_S = (15 * 60, 3600, 2 * 3600)


@dataclass(frozen=True)
class Ribbon:
    """The last 24 hours, as picture and as words."""

    drawn: list[picture.Stretch]
    svg: str
    summary: str
    totals: dict[str, float]


@cache
def _template() -> Template:
    from axonp2p.transport.http.page_templates import page_templates

    filters: dict[str, Callable[..., str]] = {
        "duration": words.duration,
        "mebibytes": words.mebibytes,
        "credit": words.credit,
        "counted": plural,
        "proof": words.proof,
        "arithmetic": words.arithmetic,
        "measured": words.measured,
        "yes_no": words.yes_no,
        "look_word": picture.word_of,
    }
    return page_templates(TEMPLATES, filters).get_template("page.html")


def page(status: Status, told: HistoryTold, local: picture.Local) -> str:
    """The whole page. `told` may reach back further than a day; `local` turns Unix seconds into the wall's clock."""
    since = status.now - picture.DAY_S
    drawn = picture.stretches(picture.up_to_now(told, status), since, status.now)
    today = local(status.now).date()
    days = status.credits.days
    first = headline(status)
    context: dict[str, Any] = {
        "status": status,
        "headline": first,
        "sign": picture.sign(first.look),
        "banners": banners(status),
        "ribbon": Ribbon(
            drawn=drawn,
            svg=picture.ribbon(drawn, since, status.now, local),
            summary=picture.summary(drawn, since, status.now),
            totals=picture.totals(drawn, since, status.now),
        ),
        "days": [(today - timedelta(days=len(days) - 1 - place), earned) for place, earned in enumerate(days)],
        "happened": told.happenings[-HAPPENINGS_SHOWN:][::-1],
        "pauses": PAUSES_S,
        "local": local,
    }
    return _template().render(context)
