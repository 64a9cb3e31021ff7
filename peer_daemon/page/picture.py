"""The pictures of the page: the last 24 hours as a ribbon, and the sign of each state (SVG as text).

Everything is placed in percent of the width, so that letters and hatching keep their shape at any width. A stretch is
told by height, pattern and words, not by its colour alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from html import escape

from msgspec import structs

from peer_daemon.control.status import HistoryTold, SpanTold, State, Status
from peer_daemon.page.words import duration

DAY_S = 24 * 3600.0
JOINED_GAP_S = 60.0
"""Between two stretches alike: less is the time that one note takes, not a pause."""
DRAWN_AT_MOST = 300
"""The longest ones: a page stays small whatever a machine went through."""

RIBBON_HEIGHT, BASE = 78, 56
LOOKS = {
    # what the span's state means on the ribbon: word, height in pixels, what its sentence does not say itself
    "ran": ("ran a job", 48, ""),
    "ready": ("ready, no job came", 14, ""),
    "waited": ("waited", 26, "waited: "),
    "battery": ("waited, on battery", 26, "waited: "),
    "paused": ("paused by you", 20, ""),
    "refused": ("could not work", 34, "could not work: "),
}
OFF = "not running"

Local = Callable[[float], datetime]
"""A Unix time as the clock on the wall has it."""

_SIGNS: dict[State, str] = {
    "training": '<circle cx="8" cy="8" r="7"/><path fill="#fff" d="M6 4.5v7l6-3.5z"/>',
    "ready": '<circle cx="8" cy="8" r="5.6" fill="none" stroke="{0}" stroke-width="2.6"/>',
    "waiting": '<path d="M3 1h10v2.4L9.4 8l3.6 4.6V15H3v-2.4L6.6 8 3 3.4z"/>',
    "paused": '<path d="M2.5 1.5h4v13h-4zm7 0h4v13h-4z"/>',
    "finishing": '<circle cx="8" cy="8" r="6" fill="none" stroke="{0}" stroke-width="2"/>'
    '<path d="M8 2a6 6 0 0 1 0 12z"/>',
    "refused": '<path d="M5 .8h6L15.2 5v6L11 15.2H5L.8 11V5z"/>'
    '<path d="m5 5 6 6m0-6-6 6" stroke="#fff" stroke-width="2" stroke-linecap="round"/>',
}
# On a browser's own tab strip, light or dark: middle tones.
_TAB_COLOURS: dict[State, str] = {
    "training": "#1f9d4c",
    "ready": "#3d8bfd",
    "waiting": "#c98500",
    "paused": "#8a94a0",
    "finishing": "#3d8bfd",
    "refused": "#d8402f",
}


@dataclass(frozen=True)
class Stretch:
    """A piece of the ribbon, Unix seconds."""

    began: float
    ended: float
    look: str
    sentence: str

    @property
    def lasted(self) -> float:
        """In seconds."""
        return self.ended - self.began


def look_of(span: SpanTold) -> str:
    """Which of `LOOKS` a kept span has."""
    if span.state in ("training", "finishing"):
        return "ran"
    if span.state == "waiting":
        return "battery" if span.why == "battery" else "waited"
    return span.state if span.state in LOOKS else "waited"


def up_to_now(told: HistoryTold, status: Status) -> HistoryTold:
    """The history with the present in it: on the disk it stands only once a minute."""
    present = SpanTold(
        began=status.since, ended=status.now, state=status.state, why=status.why, sentence=status.sentence
    )
    past = [structs.replace(one, ended=min(one.ended, status.since)) for one in told.spans if one.began < status.since]
    return HistoryTold(spans=[*past, present], happenings=told.happenings)


def stretches(told: HistoryTold, since: float, now: float) -> list[Stretch]:
    """The stretches from `since` to `now`, oldest first; neighbours alike are one, with the longer one's sentence."""
    found: list[Stretch] = []
    longest = 0.0
    for span in told.spans:
        began, ended = max(span.began, since), min(span.ended, now)
        if ended <= began:
            continue
        fresh = Stretch(began, ended, look_of(span), span.sentence)
        before = found[-1] if found else None
        if before and before.look == fresh.look and began - before.ended <= JOINED_GAP_S:
            sentence = fresh.sentence if fresh.lasted > longest else before.sentence
            longest = max(longest, fresh.lasted)
            found[-1] = replace(before, ended=ended, sentence=sentence)
        else:
            found.append(fresh)
            longest = fresh.lasted
    return sorted(sorted(found, key=lambda one: -one.lasted)[:DRAWN_AT_MOST], key=lambda one: one.began)


def totals(drawn: list[Stretch], since: float, now: float) -> dict[str, float]:
    """Seconds of each look that took part, most first; what nothing is known of is `OFF`."""
    sums: dict[str, float] = {}
    for one in drawn:
        sums[one.look] = sums.get(one.look, 0.0) + one.lasted
    if (off := now - since - sum(sums.values())) > JOINED_GAP_S:
        sums["off"] = off
    return dict(sorted(sums.items(), key=lambda pair: -pair[1]))


def word_of(look: str) -> str:
    """The name of a look for people."""
    return LOOKS[look][0] if look in LOOKS else OFF


def told_of(one: Stretch, local: Local) -> str:
    """The stretch in words: "14:10 to 15:02 (52 min), waited: another program uses 87 % CPU"."""
    when = f"{local(one.began):%H:%M} to {local(one.ended):%H:%M} ({duration(one.lasted)})"
    return f"{when}, {LOOKS[one.look][2]}{one.sentence}"


def summary(drawn: list[Stretch], since: float, now: float) -> str:
    """The whole ribbon in one sentence."""
    parts = [f"{word_of(look)} {duration(lasted)}" for look, lasted in totals(drawn, since, now).items()]
    return f"The last {duration(now - since)}: {', '.join(parts)}."


def ribbon(drawn: list[Stretch], since: float, now: float, local: Local) -> str:
    """The ribbon as one `<svg>`, styled by the page's sheet. Each stretch takes the focus and says what it was."""
    label = escape(summary(drawn, since, now))
    lines = [
        f'<svg class="ribbon" width="100%" height="{RIBBON_HEIGHT}" role="group" aria-label="{label}">',
        f"<defs>{_hatch('waited', 45)}{_hatch('battery', 135)}{_hatch('refused', 90)}</defs>",
    ]
    for at in _whole_hours(since, now, local, every=3):
        x = _percent(at, since, now)
        # Near an edge half of the letters would be cut off.
        if 2 < x < 98:
            lines.append(f'<text class="hour" x="{x:.2f}%" y="{RIBBON_HEIGHT - 4}">{local(at):%H:%M}</text>')
        lines.append(f'<line class="tick" x1="{x:.2f}%" x2="{x:.2f}%" y1="4" y2="{BASE + 5}"/>')
    lines.append(f'<line class="base" x1="0" x2="100%" y1="{BASE}.5" y2="{BASE}.5"/>')
    for one in drawn:
        # Of all stretches one can be reached by Tab; the arrow keys go on from there.
        lines.append(_drawn(one, since, now, told_of(one, local), reached=one is drawn[-1]))
    return "\n".join([*lines, "</svg>"])


def _drawn(one: Stretch, since: float, now: float, said: str, *, reached: bool) -> str:
    x, width = _percent(one.began, since, now), _percent(one.ended, since, now) - _percent(one.began, since, now)
    height, said = LOOKS[one.look][1], escape(said)
    named = f'role="img" tabindex="{0 if reached else -1}" aria-label="{said}"'
    # The first rectangle is what a finger hits: short stretches and low ones would be hard to meet.
    return (
        f'<g id="stretch-{one.began:.0f}" class="stretch {one.look}" {named}><title>{said}</title>'
        f'<rect class="reach" x="{x:.3f}%" width="{width:.3f}%" y="4" height="{BASE - 4}"/>'
        f'<rect class="look" x="{x:.3f}%" width="{max(width, 0.15):.3f}%" y="{BASE - height}" height="{height}"/></g>'
    )


def sign(state: State) -> str:
    """The sign of a state, in the colour of the text around it; people hear the word that stands beside it."""
    drawing = _SIGNS[state].format("currentColor")
    return f'<svg class="sign" viewBox="0 0 16 16" aria-hidden="true" fill="currentColor">{drawing}</svg>'


def tab_icon(state: State) -> str:
    """The same for the browser's tab: a file of its own."""
    colour = _TAB_COLOURS[state]
    drawing = _SIGNS[state].format(colour)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="{colour}">{drawing}</svg>'


def _whole_hours(since: float, now: float, local: Local, every: int) -> Iterator[float]:
    wall = local(since)
    at = since + 3600 - (wall.minute * 60 + wall.second + wall.microsecond / 1e6)
    while at < now:
        if local(at + 1).hour % every == 0:
            yield at
        at += 3600


def _percent(at: float, since: float, now: float) -> float:
    return 100.0 * (at - since) / (now - since)


def _hatch(look: str, turned: int) -> str:
    size = f'width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate({turned})"'
    lines = '<rect class="under" width="6" height="6"/><rect class="line" width="2.4" height="6"/>'
    return f'<pattern id="hatch-{look}" class="{look}" {size}>{lines}</pattern>'
