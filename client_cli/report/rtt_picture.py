"""The peers around the client, as far away as their round trips: rings on a logarithmic scale. Pure.

Peers that are near each other stand next to each other, where their coordinates tell.
"""

from __future__ import annotations

import math

from client_cli.report.story import PeerStory, Story
from client_cli.report.svg import Svg, element, label, picture

WIDTH, HEIGHT = 420, 330
CENTRE = (WIDTH / 2, HEIGHT / 2)
INNER, OUTER = 26.0, 140.0
RINGS_S = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
NAMED_AT_MOST = 24
_LONGEST_NAME = 14


def measured(story: Story) -> list[PeerStory]:
    """Those whose distance is known, in the order in which they stand around the client."""
    known = [peer for peer in story.peers.values() if peer.rtt_s is not None]
    if not known:
        return []
    left = sorted(known, key=lambda peer: peer.rtt_s or 0.0)
    found = [left.pop(0)]
    while left:
        nearest = min(left, key=lambda peer: guess(story, found[-1].name, peer.name) or math.inf)
        left.remove(nearest)
        found.append(nearest)
    return found


def guess(story: Story, one: str, other: str) -> float | None:
    """The guessed round trip between two peers, in seconds."""
    return story.among.get(one, {}).get(other) or story.among.get(other, {}).get(one)


def rtt_text(seconds: float) -> str:
    """0.0123 -> 12.3 ms."""
    ms = seconds * 1000
    return f"{ms:.2f} ms" if ms < 1 else f"{ms:.1f} ms" if ms < 100 else f"{ms:,.0f} ms"


def said(story: Story) -> str:
    """The map in a sentence."""
    peers = measured(story)
    if not peers:
        return "No round trip is measured yet."
    nearest = min(peers, key=lambda peer: peer.rtt_s or 0.0)
    farthest = max(peers, key=lambda peer: peer.rtt_s or 0.0)
    if nearest is farthest:
        return f"A message to {nearest.name} and back takes {rtt_text(nearest.rtt_s or 0.0)}."
    near, far = rtt_text(nearest.rtt_s or 0.0), rtt_text(farthest.rtt_s or 0.0)
    return (
        f"A message to {nearest.name} and back takes {near}, to {farthest.name} {far}. Each ring is about three times "
        "as far as the one inside it."
    )


def rtt_map(story: Story) -> Svg:
    """The map; empty text while nothing is measured."""
    peers = measured(story)
    if not peers:
        return Svg("")
    distances = [max(peer.rtt_s or 0.0, RINGS_S[0]) for peer in peers]
    rings = _rings(min(distances), max(distances))
    low, high = math.log(rings[0]), math.log(rings[-1])

    def radius(seconds: float) -> float:
        share = (math.log(max(seconds, rings[0])) - low) / (high - low)
        return INNER + min(1.0, share) * (OUTER - INNER)

    drawn = [_ring(radius(seconds), seconds) for seconds in rings]
    spots = []
    for index, (peer, distance) in enumerate(zip(peers, distances, strict=True)):
        turn = 2 * math.pi * (index + 0.5) / len(peers) - math.pi / 2
        spots.append(
            (peer, CENTRE[0] + radius(distance) * math.cos(turn), CENTRE[1] + radius(distance) * math.sin(turn))
        )
    drawn += [
        element("line", class_=f"way {'gone' if peer.state == 'lost' else ''}", x1=CENTRE[0], y1=CENTRE[1], x2=x, y2=y)
        for peer, x, y in spots
    ]
    for peer, x, y in spots:
        drawn += _spot(peer, x, y, named=len(peers) <= NAMED_AT_MOST)
    you = element("rect", class_="you", x=CENTRE[0] - 6, y=CENTRE[1] - 6, width=12, height=12, rx=2)
    here = label("you", class_="name", x=CENTRE[0], y=CENTRE[1] + 20, text_anchor="middle")
    return picture(*drawn, you, here, said=said(story), class_="map", viewBox=f"0 0 {WIDTH} {HEIGHT}")


def _rings(least: float, most: float) -> list[float]:
    first = max((index for index, one in enumerate(RINGS_S) if one <= least), default=0)
    last = min((index for index, one in enumerate(RINGS_S) if one >= most), default=len(RINGS_S) - 1)
    return list(RINGS_S[first : max(last, first + 1) + 1])


def _ring(radius: float, seconds: float) -> Svg:
    x, y = CENTRE[0] + radius * math.cos(-math.pi / 2), CENTRE[1] - radius
    return Svg(
        element("circle", class_="ring", cx=CENTRE[0], cy=CENTRE[1], r=radius)
        + label(f"{seconds * 1000:g} ms", class_="tick", x=x, y=y - 3, text_anchor="middle")
    )


def _spot(peer: PeerStory, x: float, y: float, *, named: bool) -> list[Svg]:
    if peer.state == "lost":
        spot = element("path", class_="gone", d=f"M{x - 5:.1f} {y - 5:.1f}l10 10m0-10l-10 10")
    else:
        spot = element("circle", class_=f"spot {peer.state}", cx=x, cy=y, r=7)
    if not named:
        return [spot]
    outwards = "start" if x >= CENTRE[0] else "end"
    aside = 11 if outwards == "start" else -11
    name = peer.name if len(peer.name) <= _LONGEST_NAME else peer.name[: _LONGEST_NAME - 1] + "…"
    return [
        spot,
        label(name, class_="name", x=x + aside, y=y + 1, text_anchor=outwards),
        label(rtt_text(peer.rtt_s or 0.0), class_="tick", x=x + aside, y=y + 14, text_anchor=outwards),
    ]
