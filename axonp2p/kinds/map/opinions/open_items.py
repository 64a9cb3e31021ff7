"""Items that wait for another opinion, what peers found of them so far, and peers that were outvoted. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from axonp2p.kinds.map.opinions.quorum import Accepted, Verdict, Vote, WantsAnother, verdict
from axonp2p.kinds.map.queue_actions import Distrust

MOST_AWAITED = 4096
"""Items that wait for another opinion; while there are more, no new ones are begun."""
CLEAR = 2
"""So many who agree show that one who found another thing is wrong."""


class OpenItems:
    """A peer is known by its key here: the same one may come back at another rank."""

    def __init__(self, outvoted: Iterable[str]) -> None:
        self._open: dict[int, tuple[int, list[Vote]]] = {}
        """How many must be equal, and those so far."""
        self._outvoted = set(outvoted)
        self._peers: dict[int, str] = {}

    def open(self, item: int, needed: int, votes: list[Vote]) -> None:
        """An earlier life left it undecided."""
        self._open[item] = (needed, votes)

    def came(self, rank: int, peer: str) -> None:
        """That peer is there."""
        self._peers[rank] = peer

    def forget(self, rank: int) -> None:
        """It has gone; its opinions stay."""
        self._peers.pop(rank, None)

    def vote(self, item: int, rank: int, group: int, needed: int) -> tuple[Verdict, int]:
        """The verdict after one more opinion, and how many must be equal: `needed`, if it is the first one."""
        needed, votes = self._open.get(item, (needed, []))
        votes.append(Vote(self._peers[rank], group))
        found = verdict(votes, needed)
        if isinstance(found, WantsAnother):
            self._open[item] = (needed, votes)
        return found, needed

    def close(self, item: int) -> None:
        """It has a result, whatever it is."""
        self._open.pop(item, None)

    def judge(self, item: int, accepted: Accepted) -> list[Distrust]:
        """Peers that were outvoted by several now, and are believed no more: what they alone said is forgotten."""
        if len(accepted.agreed) < CLEAR:
            return []
        wrong = [peer for peer in accepted.outvoted if peer not in self._outvoted]
        if not wrong:
            return []
        self._outvoted.update(wrong)
        for waiting, (needed, votes) in self._open.items():
            self._open[waiting] = (needed, [one for one in votes if one.peer not in wrong])
        at = {peer: rank for rank, peer in reversed(self._peers.items())}
        return [Distrust(peer, at.get(peer), len(accepted.agreed), item) for peer in wrong]

    # --- what may be asked ---

    def __len__(self) -> int:
        return len(self._open)

    def has_opinion(self, rank: int, items: Collection[int]) -> bool:
        """Whether the peer there has given its opinion of one of these."""
        peer = self._peers[rank]
        return any(one.peer == peer for item in items for one in self._open.get(item, (0, []))[1])

    def is_outvoted(self, rank: int) -> bool:
        """Whether the peer there is believed no more."""
        return self._peers[rank] in self._outvoted

    def others(self, rank: int, ranks: Collection[int]) -> int:
        """How many other peers there are at these."""
        return len({self._peers[one] for one in ranks} - {self._peers.get(rank)})
