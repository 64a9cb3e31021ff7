"""Who may see the status page, and who may change something through it.

Loopback alone is no wall: any page that the owner's browser has open can call 127.0.0.1, under a name of its own
(DNS rebinding) or as itself, and any other account of this computer can too. So the name in `Host` must be ours, calls
that another site made are refused, and whoever wants to change something shows the token that lies in the owner's home.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from ipaddress import ip_address

from axonp2p.errors import SettingsError
from axonp2p.transport.address import join_host_port, split_host_port

TOKEN_HEADER = "X-Axon-Token"  # noqa: S105 -- the header's name
LOOKS = frozenset({"GET", "HEAD"})
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer. Static files replace the last one: nothing private stands in them."""


@dataclass(frozen=True)
class Caller:
    """What a request says of who sent it; None: it does not say."""

    method: str
    host: str | None
    origin: str | None = None
    fetch_site: str | None = None
    token: str | None = None


def loopback(listen: str) -> tuple[str, int]:
    """Host and port of the setting `page`. Raises `SettingsError` for an address that others could reach."""
    host, port = split_host_port(listen)
    try:
        alone = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        alone = False
    if not alone:
        raise SettingsError(
            f"the status page would listen on {host}, where others can reach it",
            cause="whoever reads the page sees what this computer does",
            fix='page = "127.0.0.1:7072" in config.toml; from afar: ssh -L 7072:127.0.0.1:7072 THIS-COMPUTER',
        )
    return host, port


def own_names(host: str, port: int) -> frozenset[str]:
    """What a browser may write in `Host` when it means this page: HOST:PORT."""
    names = {join_host_port(name, port) for name in (host, "127.0.0.1", "localhost", "::1")}
    return frozenset(names | {name.rpartition(":")[0] for name in names} if port == 80 else names)


def why_refused(caller: Caller, names: frozenset[str], token: str) -> str:
    """One sentence that says why this request is refused; empty: it is not."""
    if caller.host is None or caller.host.lower() not in names:
        return "this page answers only to its own address on this computer"
    # "none": typed or opened from outside a browser. "same-site" is another port of this computer: it may link here.
    if caller.fetch_site == "cross-site":
        return "another site asked for this"
    if caller.origin is not None and caller.origin.lower() not in {f"http://{name}" for name in names}:
        return "another site asked for this"
    if caller.method in LOOKS:
        return ""
    if caller.fetch_site not in (None, "same-origin", "none"):
        return "another site asked for this"
    # Compared as bytes: what is not ASCII would be refused by the comparison with an exception.
    if not hmac.compare_digest((caller.token or "").encode(errors="replace"), token.encode()):
        return "only who holds the token may change something; open the page with: axon-peer page"
    return ""
