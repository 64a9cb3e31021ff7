"""The operator's page and the landing page as HTML."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from tests.laboratory.paper_overview import ATTIC, BUSY, OVERVIEWS
from tracker.page.overview import Overview
from tracker.page.render import Chart, landing_page, operators_page, span_text


def html(overview: Overview) -> str:
    return operators_page(overview, lambda at: datetime.fromtimestamp(at, UTC))


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


@pytest.mark.parametrize("name", OVERVIEWS)
def test_every_state_is_drawn_within_the_policy(name: str) -> None:
    page = html(OVERVIEWS[name])
    assert f"<title>{OVERVIEWS[name].word} - tracker lab" in page
    assert " style=" not in page
    assert " onclick=" not in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for part in re.findall(r"<[a-z]+[^>]*data-part[^>]*>", page):
        assert "id=" in part


def test_what_an_operator_looks_for_is_there() -> None:
    text = text_of(html(BUSY))
    for part in (
        "202 peers announced, 1 of 2 other trackers answer.",
        "Ready: a slot is free 61",
        "Announced, but unreachable 9",
        "Convictions 2",
        "Database 212 MB",
        "Carried since the start 1.9 GB",
        "95 of 100 answered within 10 ms",
        "/v1/announce 59,000",
        "AX-407",
        "silent for 2 h 1 min",
        "0.4 s",
    ):
        assert part in text, part


def test_a_tracker_alone_is_told_how_to_share() -> None:
    assert "shares its table with no other tracker" in html(OVERVIEWS["empty"])
    assert "shares its table with no other tracker" not in html(BUSY)


def test_what_strangers_chose_is_no_html() -> None:
    hostile = msgspec.structs.replace(ATTIC, address="https://<script>alert(1)</script>:1", log="<b>x</b>")
    page = html(replace(BUSY, trackers=[hostile], trouble="<i>x</i>"))
    assert "<script>alert" not in page
    assert "<b>x" not in page
    assert "<i>x" not in page


def test_bars_fill_the_height_and_nothing_is_a_thin_line() -> None:
    assert Chart("x", "y", [None, 0, 5, 10]).bars == [(1, 45.4, 0.6), (2, 23.0, 23.0), (3, 0.0, 46.0)]
    assert Chart("x", "y", [None]).bars == []


def test_the_landing_page_tells_the_whole_address() -> None:
    page = landing_page(BUSY.tracker, "0.1.0", BUSY.address, "", 4)
    assert BUSY.address in page
    assert "knows 4 peers" in text_of(page)
    assert "in trouble: disk" in text_of(landing_page(BUSY.tracker, "0.1.0", "", "disk", 4))


@pytest.mark.parametrize(("seconds", "text"), [(4, "4 s"), (130, "2 min"), (7300, "2 h 1 min"), (200_000, "2 days")])
def test_spans(seconds: float, text: str) -> None:
    assert span_text(seconds) == text
