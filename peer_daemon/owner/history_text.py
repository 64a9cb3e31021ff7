"""What was kept of a peer's days, as a table. Pure: values in, text out."""

from __future__ import annotations

from axonp2p.plain_text import columns
from peer_daemon.control.status import HappeningTold, HistoryTold
from peer_daemon.owner.status_text import Local
from peer_daemon.page.words import duration


def history_text(told: HistoryTold, local: Local) -> str:
    """A line a stretch of time or happening, oldest first."""
    rows = [(span.began, duration(span.ended - span.began), span.state, span.sentence) for span in told.spans]
    rows += [(one.at, "", one.kind, _said(one)) for one in told.happenings]
    if not rows:
        return "Nothing was kept of that time."
    lines = [[f"{local(at):%a %d %b %H:%M}", long, what, said] for at, long, what, said in sorted(rows)]
    return columns(["when", "for", "what", "because"], lines, right=(1,))


def _said(one: HappeningTold) -> str:
    return one.sentence if one.job in one.sentence else f"{one.job}: {one.sentence}"
