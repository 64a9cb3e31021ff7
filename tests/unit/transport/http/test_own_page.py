"""Whom a page on loopback lets in, whatever it shows."""

from __future__ import annotations

import pytest

from axonp2p.errors import SettingsError
from axonp2p.transport.http.own_page import HEADERS, loopback, own_names, why_not_ours

OURS = own_names("127.0.0.1", 7080)


def refused(host: str | None = "127.0.0.1:7080", origin: str | None = None, fetch_site: str | None = None) -> str:
    return why_not_ours(OURS, host=host, origin=origin, fetch_site=fetch_site)


@pytest.mark.parametrize("host", ["127.0.0.1:7080", "localhost:7080", "[::1]:7080", "LOCALHOST:7080"])
@pytest.mark.parametrize("fetch_site", [None, "none", "same-origin", "same-site"])
def test_its_own_name_leads_to_it(host: str, fetch_site: str | None) -> None:
    assert refused(host, fetch_site=fetch_site) == ""
    assert refused(host, origin="http://127.0.0.1:7080") == ""


@pytest.mark.parametrize("host", [None, "", "127.0.0.1", "evil.example:7080", "localhost:7081", "0.0.0.0:7080"])
def test_a_name_that_only_leads_here_is_refused(host: str | None) -> None:
    assert "own address" in refused(host)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://127.0.0.1:7080", "http://localhost:1"])
def test_another_site_is_refused(origin: str) -> None:
    assert "another site" in refused(origin=origin)
    assert "another site" in refused(fetch_site="cross-site")


@pytest.mark.parametrize(
    "listen", ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "192.168.1.4:7072", "example.org:1", "otter.local:7072"]
)
def test_it_listens_on_loopback_alone(listen: str) -> None:
    with pytest.raises(SettingsError, match="the job's page would listen on") as raised:
        loopback(listen, "job's page", cause="because", fix="do this")
    assert raised.value.fix == "do this"


@pytest.mark.parametrize("listen", ["7072", ""])
def test_an_address_without_a_host_is_none(listen: str) -> None:
    with pytest.raises(SettingsError, match="is not HOST:PORT") as raised:
        loopback(listen, "job's page", cause="because", fix="do this")
    assert raised.value.fix


def test_where_it_may_listen() -> None:
    assert loopback("127.0.0.1:0", "page", cause="", fix="") == ("127.0.0.1", 0)
    assert loopback("127.0.0.9:1", "page", cause="", fix="") == ("127.0.0.9", 1)
    assert loopback("localhost:80", "page", cause="", fix="") == ("localhost", 80)
    assert loopback("[::1]:9", "page", cause="", fix="") == ("::1", 9)
    assert "no-store" in HEADERS["Cache-Control"]
