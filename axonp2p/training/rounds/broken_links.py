"""Members that cannot reach each other: their slices are owned by others, so that nobody has to go for it. Pure.

Between two that cannot reach each other nothing has to travel, as long as neither owns a slice. Only when nobody is
left who can reach all the others, whoever is most in the way has to go.
"""

from __future__ import annotations

from collections.abc import Collection

from axonp2p.training.rounds.suspects import Pair, liars_needed

GRACE_S = 1.0
"""A dead peer's session ends by itself very soon, and then it is no link that is to blame."""


class BrokenLinks:
    """The broken ones of one job. A pair stays cut for as long as both are in the job."""

    def __init__(self) -> None:
        self._reported: dict[Pair, tuple[str, float]] = {}
        self._cut: dict[Pair, str] = {}

    def note(self, rank: int, to: int, reason: str, now: float) -> None:
        """The member cannot reach `to`."""
        pair = frozenset((rank, to))
        if len(pair) == 2 and pair not in self._cut:
            self._reported.setdefault(pair, (reason, now + GRACE_S))

    def part(self, pair: Pair, reason: str, members: Collection[int]) -> bool:
        """Neither of the two is to own a slice from now on; False when that is so already, or nobody else can."""
        if pair in self._cut:
            return False
        self._cut[pair] = reason
        if self.in_the_way(members, ()):
            del self._cut[pair]
        return pair in self._cut

    def deadline(self, present: Collection[int]) -> float | None:
        """When something has to be done about it. A link counts while both its ends are present."""
        return min((until for pair, (_, until) in self._reported.items() if pair <= set(present)), default=None)

    def due(self, present: Collection[int], now: float) -> dict[Pair, str]:
        """Links that have been broken for long enough, and why; they are cut from now on."""
        due = {
            pair: reason for pair, (reason, until) in self._reported.items() if until <= now and pair <= set(present)
        }
        for pair in due:
            del self._reported[pair]
        self._cut |= due
        return due

    def cut(self, members: Collection[int], following: Collection[int]) -> list[Pair]:
        """Pairs of which the members may own nothing; with one that only follows it is the member alone."""
        present = set(members) | set(following)
        return [pair & set(members) for pair in self._cut if pair <= present and pair & set(members)]

    def in_the_way(self, members: Collection[int], following: Collection[int]) -> dict[int, str]:
        """Who has to go so that somebody is left to own a slice, and why: those most in the way first.

        A link is cut on the word of one of its ends. So it is not the one with most cut links that goes: a few that lie
        together could all say that they do not reach the same one. It is whose honesty would need most liars.
        """
        gone: dict[int, str] = {}
        present = set(members) | set(following)
        while True:
            pairs = {pair: reason for pair, reason in self._cut.items() if pair <= present}
            if not pairs or set(members) & present - frozenset[int]().union(*pairs):
                return gone
            # Of two that are equally in the way the later one in rank goes, and it has come later, too.
            worst = max({rank for pair in pairs for rank in pair}, key=lambda rank: (liars_needed(rank, pairs), rank))
            gone[worst] = next(reason for pair, reason in pairs.items() if worst in pair)
            present.discard(worst)
