"""Whom the page lets in."""

from __future__ import annotations

import pytest

from axonp2p.transport.http.own_page import own_names
from peer_daemon.page.guard import PageCaller, why_refused

TOKEN = "5e" * 32
OURS = own_names("127.0.0.1", 7072)


def refused(method: str = "GET", **said: str | None) -> str:
    return why_refused(PageCaller(method, said.pop("host", "127.0.0.1:7072"), **said), OURS, TOKEN)


@pytest.mark.parametrize("host", ["127.0.0.1:7072", "localhost:7072", "[::1]:7072", "LocalHost:7072"])
def test_who_calls_it_by_its_own_name_may_look(host: str) -> None:
    assert refused(host=host) == ""


@pytest.mark.parametrize(
    "host", [None, "", "evil.example:7072", "127.0.0.1", "127.0.0.1:7070", "127.0.0.1.evil.example:7072"]
)
def test_a_name_that_only_leads_here_is_refused(host: str | None) -> None:
    assert "own address" in refused(host=host)


def test_on_the_usual_port_of_the_web_browsers_leave_the_number_out() -> None:
    assert {"127.0.0.1", "localhost", "[::1]"} <= own_names("127.0.0.1", 80)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:7070", "https://127.0.0.1:7072"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_sites_script_gets_nothing(origin: str, method: str) -> None:
    assert "another site" in refused(method, origin=origin, token=TOKEN)


def test_another_site_may_neither_frame_nor_fetch_nor_post() -> None:
    assert "another site" in refused(fetch_site="cross-site")
    assert "another site" in refused("POST", fetch_site="cross-site", token=TOKEN)


def test_another_port_of_this_computer_may_link_here_but_not_steer() -> None:
    assert refused(fetch_site="same-site") == ""
    assert "another site" in refused("POST", fetch_site="same-site", token=TOKEN)


@pytest.mark.parametrize("token", [None, "", "5e" * 31, "5e" * 31 + "5f", TOKEN.upper(), "\udcff", "Ω"])
def test_without_the_token_nothing_changes(token: str | None) -> None:
    assert "axon-peer page" in refused("POST", origin="http://127.0.0.1:7072", fetch_site="same-origin", token=token)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_whatever_is_no_look_needs_the_token(method: str) -> None:
    assert refused(method)
    assert refused(method, token=TOKEN) == ""
