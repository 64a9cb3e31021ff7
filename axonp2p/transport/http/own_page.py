"""Access to a page that a program of ours serves to the browsers of its own computer.

Loopback alone is no wall: any page that somebody's browser has open can call 127.0.0.1, under a name of its own (DNS
rebinding) or as itself. So the name in `Host` must be ours, and calls that another site made are refused.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from pathlib import Path

from axonp2p.errors import SettingsError
from axonp2p.transport.address import join_host_port, split_host_port

LOOK = Path(__file__).parent / "look.css"
"""The sheet of colours and boxes that every page of ours serves beside its own."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer, beside the page's own Content-Security-Policy."""


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy of a page whose scripts and sheets are files of its own."""


def loopback(listen: str, what: str, *, cause: str, fix: str) -> tuple[str, int]:
    """Host and port of HOST:PORT. Raises `SettingsError` for an address at which others could reach `what`."""
    host, port = split_host_port(listen)
    try:
        alone = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        alone = False
    if not alone:
        raise SettingsError(f"the {what} would listen on {host}, where others can reach it", cause=cause, fix=fix)
    return host, port


def own_names(host: str, port: int) -> frozenset[str]:
    """The names that a browser may write in `Host` when it means this page: HOST:PORT."""
    names = {join_host_port(name, port) for name in (host, "127.0.0.1", "localhost", "::1")}
    return frozenset(names | {name.rpartition(":")[0] for name in names} if port == 80 else names)


def why_not_ours(names: Collection[str], *, host: str | None, origin: str | None, fetch_site: str | None) -> str:
    """One sentence that says why a look is refused; empty: it is not. The rest are the request's heads."""
    if host is None or host.lower() not in names:
        return "this page answers only to its own address on this computer"
    # "none": typed or opened from outside a browser. "same-site" is another port of this computer: it may link here.
    if fetch_site == "cross-site":
        return "another site asked for this"
    if origin is not None and origin.lower() not in {f"http://{name}" for name in names}:
        return "another site asked for this"
    return ""
