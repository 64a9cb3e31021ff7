"""Access to the status page: to see it, and to change something through it.

A call from another site is refused as on every page of ours (`transport.own_page`). Other accounts of this computer
may look; one that wants to change something shows the token that lies in the owner's home.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from dataclasses import dataclass

from axonp2p.transport.http.own_page import why_not_ours

TOKEN_HEADER = "X-Axon-Token"  # noqa: S105 -- the header's name
LOOKS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True)
class PageCaller:
    """The sender of a request, as far as the request tells; None: it does not tell."""

    method: str
    host: str | None
    origin: str | None = None
    fetch_site: str | None = None
    token: str | None = None


def why_refused(caller: PageCaller, names: Collection[str], token: str) -> str:
    """One sentence that says why this request is refused; empty: it is not."""
    if why := why_not_ours(names, host=caller.host, origin=caller.origin, fetch_site=caller.fetch_site):
        return why
    if caller.method in LOOKS:
        return ""
    if caller.fetch_site not in (None, "same-origin", "none"):
        return "another site asked for this"
    # Compared as bytes: what is not ASCII would be refused by the comparison with an exception.
    if not hmac.compare_digest((caller.token or "").encode(errors="replace"), token.encode()):
        return "only who holds the token may change something; open the page with: axon-peer page"
    return ""
