"""The signs of marks and of states: told apart by shape, and named by the word that stands beside them. Pure."""

from __future__ import annotations

from client_cli.report.story import MarkKind
from client_cli.report.svg import Svg, element

_FILLED: dict[str, str] = {
    "joined": "M0-5 5.2 4.4H-5.2z",
    "behind": "M0 5 5.2-4.4H-5.2z",
    "exchange": "M0-5.4 5.4 0 0 5.4-5.4 0z",
    "paused": "M-4.4-5h3.2V5h-3.2zM1.2-5h3.2V5H1.2z",
    "resumed": "M-3.6-5.2 5.4 0-3.6 5.2z",
    "goes on": "M-3.6-5.2 5.4 0-3.6 5.2z",
    "waits": "M-4.4-5.4H4.4v1.8L1 0l3.4 3.6v1.8h-8.8V3.6L-1 0-4.4-3.6z",
    "again": "M-5.4-5 0-.6V-5l5.4 5L0 5V.6L-5.4 5z",
    "over": "M-4.4-4.4h8.8v8.8h-8.8z",
}
_DRAWN: dict[str, str] = {
    "lost": "M-4.2-4.2 4.2 4.2M4.2-4.2-4.2 4.2",
    "redone": "M4.4 1A4.5 4.5 0 1 1 2.6-3.6M3.6-6V-2.8H.4",
    "handed back": "M5 0H-4M-.6-3.8-4.4 0-.6 3.8",
}
WORDS: dict[MarkKind, str] = {
    "lost": "peer lost",
    "handed back": "wanted back by its owner",
    "behind": "left behind",
    "joined": "joined",
    "redone": "round done again",
    "exchange": "exchange chosen",
    "paused": "peer paused",
    "resumed": "peer continues",
    "waits": "job waits",
    "goes on": "job continues",
    "again": "job resumed",
    "over": "job ended",
}
GRADES: dict[MarkKind, str] = {
    "lost": "bad", "redone": "warn", "behind": "warn", "paused": "warn", "waits": "warn", "handed back": "warn",
    "joined": "good", "resumed": "good", "goes on": "good", "again": "good", "exchange": "info", "over": "info",
}  # fmt: skip
"""How the sign is coloured."""


def drawing(kind: str) -> Svg:
    """The sign around 0, 0: ten pixels across, in the colour of what is around it."""
    if kind in _DRAWN:
        return element("path", d=_DRAWN[kind], class_="stroke")
    return element("path", d=_FILLED[kind], class_="fill")


def sign(kind: MarkKind) -> Svg:
    """The same as a picture of its own, beside words."""
    return element("svg", drawing(kind), class_=f"mark {GRADES[kind]}", viewBox="-7 -7 14 14", aria_hidden="true")


_STATES: dict[str, str] = {
    "running": '<circle cx="8" cy="8" r="7"/><path fill="#fff" d="M6 4.5v7l6-3.5z"/>',
    "preparing": '<circle cx="8" cy="8" r="5.6" fill="none" stroke="{0}" stroke-width="2.6"/>',
    "paused": '<path d="M2.5 1.5h4v13h-4zm7 0h4v13h-4z"/>',
    "finished": '<circle cx="8" cy="8" r="7.4"/><path d="m4.4 8.4 2.5 2.5 4.8-5" fill="none" stroke="#fff" '
    'stroke-width="2" stroke-linecap="round"/>',
    "failed": '<path d="M5 .8h6L15.2 5v6L11 15.2H5L.8 11V5z"/>'
    '<path d="m5 5 6 6m0-6-6 6" stroke="#fff" stroke-width="2" stroke-linecap="round"/>',
    "waiting": '<path d="M2.6 1h10.8v3L9.8 8l3.6 4v3H2.6v-3L6.2 8 2.6 4z"/>',
    "cancelled": '<path d="M2 2h12v12H2z"/>',
}
# On a browser's own tab strip, light or dark: middle tones.
_TAB_COLOURS = {
    "running": "#1f9d4c",
    "preparing": "#3d8bfd",
    "paused": "#c98500",
    "finished": "#1f9d4c",
    "failed": "#d8402f",
    "waiting": "#c98500",
    "cancelled": "#8a94a0",
}


def state_sign(look: str) -> Svg:
    """The sign of a job's state, in the colour of the text around it."""
    inside = Svg(_STATES[look].format("currentColor"))
    return element("svg", inside, class_="sign", viewBox="0 0 16 16", aria_hidden="true", fill="currentColor")


def tab_icon(look: str) -> Svg:
    """The same as a whole file, for the browser's tab."""
    colour = _TAB_COLOURS[look]
    inside = Svg(_STATES[look].format(colour))
    return element("svg", inside, xmlns="http://www.w3.org/2000/svg", viewBox="0 0 16 16", fill=colour)
