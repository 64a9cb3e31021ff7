"""The page of all jobs as one document, with its style and its script inside, as a job's page has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from axonp2p.plain_text import plural
from axonp2p.transport.http.own_page import LOOK
from client_cli.jobs_page.listed import ListedJobs
from client_cli.report import signs
from client_cli.report.document import Local, icon_address, live_script, only_these
from client_cli.text.kind_text import Command

if TYPE_CHECKING:
    from jinja2 import Template

HERE = Path(__file__).parent


def list_policy() -> str:
    """The Content-Security-Policy of the document."""
    return only_these(_style(), live_script(), live=True)


def list_page(listed: ListedJobs, command: Command, local: Local, home: str) -> str:
    """The whole page; `home` is the folder whose jobs they are."""
    word = f"{listed.at_work:,} AT WORK" if listed.at_work else "NONE AT WORK"
    return _template().render(
        listed=listed,
        word=word,
        look="running" if listed.at_work else "cancelled",
        icon=icon_address("running" if listed.at_work else "cancelled"),
        policy=list_policy(),
        style=_style(),
        script=live_script(),
        again=command("page"),
        command=command,
        local=local,
        home=home,
    )


@cache
def _style() -> str:
    return LOOK.read_text() + (HERE / "static" / "jobs.css").read_text()


@cache
def _template() -> Template:
    from axonp2p.transport.http.page_templates import page_templates

    filters: dict[str, Callable[..., object]] = {
        "plural": plural,
        "sign": signs.state_sign,
        "share": lambda row: f"{100 * min(1.0, row.done / (row.units or 1)):.2f}",
        "address": lambda job: quote(job, safe=""),
    }
    return page_templates(HERE / "templates", filters).get_template("jobs.html")
