"""Do all trackers see one swarm? (pure)

A tracker shows at most 200 peers, a random part of a larger swarm. Where two showed all that they know, the sets are
compared. Where they did not, two samples of one swarm have about |A| * |B| / size peers in common, and two halves of a
split one have none.
"""

from __future__ import annotations

from collections.abc import Sequence

from client_cli.doctor.facts import ClientTrackerFacts

FEW = 1
"""Peers that one tracker may lack: one that has just left, or was marked as silent there."""
SHARE = 0.1
"""The part of all peers that it may lack beside."""
ENOUGH_IN_COMMON = 5.0
"""With fewer expected in common, two samples say nothing; then only the numbers of peers are compared."""


def groups_of(trackers: Sequence[ClientTrackerFacts]) -> list[list[ClientTrackerFacts]]:
    """Trackers that see the same swarm stand together, the group that sees most peers first."""
    groups: list[list[ClientTrackerFacts]] = []
    for tracker in trackers:
        alike = [group for group in groups if any(_see_the_same(tracker, other) for other in group)]
        groups = [group for group in groups if group not in alike]
        groups.append([tracker, *(other for group in alike for other in group)])
    for group in groups:
        group.sort(key=lambda tracker: tracker.name)
    return sorted(groups, key=lambda group: (-max(tracker.alive for tracker in group), group[0].name))


def _see_the_same(one: ClientTrackerFacts, other: ClientTrackerFacts) -> bool:
    shown_all = len(one.peers) >= one.alive and len(other.peers) >= other.alive
    if shown_all:
        return len(one.peers ^ other.peers) <= max(FEW, SHARE * len(one.peers | other.peers))
    size = max(one.alive, other.alive)
    expected = len(one.peers) * len(other.peers) / size
    if expected < ENOUGH_IN_COMMON:
        return min(one.alive, other.alive) >= (1 - 2 * SHARE) * size
    return len(one.peers & other.peers) >= expected / 4
