"""The terms of one exchange for one member: its members, the owners of slices, and how values travel. Pure.

With n members, of which member i owns the share w of the vector, i sends its values of all other slices (1 - w) and
the mean of its own to all others (w (n - 1)): together 1 + w (n - 2) vectors, and it receives as much. hivemind
(github.com/learning-at-home/hivemind, `load_balance_peers`) minimises the time of the slowest, the largest
(1 + w (n - 2)) / bandwidth, by linear programming. There is no need to: in the time t member i can own up to
(t bandwidth - 1) / (n - 2), all members together own 1, and t cannot be less than the slowest needs to send its own
vector once; from that both t and all shares follow in closed form.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from axonp2p.errors import MalformedMessage
from axonp2p.tensors.coding import EXACT, Coding
from axonp2p.training.messages import ExchangeSettings, StartRound


class Lengths(Protocol):
    """The part of a model's `Layout` that matters here."""

    @property
    def values(self) -> int:
        """Of the whole vector."""

    @property
    def parameters(self) -> int:
        """Of its beginning, which is coded in few bits."""

    @property
    def rows(self) -> int:
        """Of what follows, of which few members change most."""


ExchangeKey = tuple[int, int, int]
"""Round, attempt, exchange: later exchanges have larger keys."""


@dataclass(frozen=True)
class Terms:
    """One exchange, as the member with rank `rank` takes part in it."""

    rank: int
    round: int
    attempt: int
    exchange: int
    members: tuple[int, ...]
    """Sorted."""
    listeners: tuple[int, ...]
    """Sorted; `rank` is either here or among the members."""
    slices: Mapping[int, tuple[int, int]]
    """Each member's slice of the vector, from begin to end; some may be empty."""
    settings: ExchangeSettings
    exact_from: int
    """From here on values always travel exact, and nothing is held back: sparse rows, then buffers and the like."""
    most_samples: int
    """The largest weight that a member may claim."""
    gather: Coding
    """Of this member's values."""
    result: Coding
    """Of the mean of this member's slice."""
    rows_to: int = 0
    """From `exact_from` to here the mean is that of the members that changed a value."""

    @property
    def key(self) -> ExchangeKey:
        """Which exchange it is."""
        return self.round, self.attempt, self.exchange

    @property
    def values(self) -> int:
        """The length of the exchanged vector."""
        return max(end for _, end in self.slices.values())

    @property
    def listens(self) -> bool:
        """True when this one only hears the results."""
        return self.rank not in self.slices

    @property
    def fewest(self) -> int:
        """A mean of fewer members is not handed out: half of all, the owner included, or what a rule needs."""
        return max((len(self.members) + 1) // 2, self.settings.rule.least_members)

    def parts_of(self, owner: int) -> dict[int, int]:
        """How many values there are at each offset of a member's slice, in the order in which they travel."""
        begin, end = self.slices[owner]
        return dict(parts(begin, end, self.settings.part, self.exact_from))

    def rows_at(self, offset: int, count: int) -> slice:
        """Which values of a part of the own slice belong to sparse rows."""
        begin = self.slices[self.rank][0] + offset
        return slice(max(self.exact_from - begin, 0), min(self.rows_to - begin, count))


def terms_of(start: StartRound, rank: int, exchange: int, layout: Lengths, batch: int) -> Terms:
    """The terms of one exchange of a round for one of its members or listeners.

    `batch` is in samples a local step. Raises `MalformedMessage` for an order that makes no sense: ranks that are twice
    in it, a share too many, an exchange that it does not have.
    """
    everyone = [*start.members, *start.listeners]
    if len(set(everyone)) != len(everyone) or rank not in everyone:
        raise MalformedMessage("a round that names a member twice, or does not name the one that it was sent to")
    if len(start.shares) != len(start.members) or not sum(start.shares):
        raise MalformedMessage("a round whose shares do not fit its members")
    if start.settings.rule.least_members > len(start.members):
        raise MalformedMessage(
            f"{start.settings.rule.hostile} liars among {len(start.members)} members cannot be borne"
        )
    every = start.settings.exchange_every
    left = start.steps - exchange * every
    if left <= 0:
        raise MalformedMessage(f"a round of {start.steps} steps has no exchange number {exchange}")
    return Terms(
        rank=rank,
        round=start.round,
        attempt=start.attempt,
        exchange=exchange,
        members=tuple(sorted(start.members)),
        listeners=tuple(sorted(start.listeners)),
        slices=slices(layout.values, start.members, start.shares),
        settings=start.settings,
        exact_from=layout.parameters,
        most_samples=min(left, every) * batch,
        gather=start.gather,
        # A member that is alone has nobody to save bytes for.
        result=start.result if len(everyone) > 1 else EXACT,
        rows_to=layout.parameters + layout.rows,
    )


def parts(begin: int, end: int, part: int, exact_from: int) -> list[tuple[int, int]]:
    """Offset (from `begin`) and count of each part of a slice; none has values from both sides of `exact_from`."""
    border = min(max(exact_from, begin), end)
    return [
        (offset - begin, min(part, stop - offset))
        for start, stop in ((begin, border), (border, end))
        for offset in range(start, stop, part)
    ]


WHOLE = 2**20
"""The sum of all shares, but for rounding."""


def slices(values: int, members: Sequence[int], shares: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Each member's slice of a vector of `values`, in proportion to its share, in the order given.

    The same integers on every machine. At least one share must be above 0.
    """
    bounds = [0, *(reached * values // sum(shares) for reached in accumulate(shares))]
    return {member: (bounds[at], bounds[at + 1]) for at, member in enumerate(members)}


def shares_for(
    upload: Mapping[int, float], download: Mapping[int, float], *, cut: Collection[frozenset[int]] = ()
) -> dict[int, int]:
    """The shares with which the slowest member is ready soonest; `upload` and `download` in bytes a second, by rank.

    A member that cannot reach one of the others (a pair in `cut`) owns nothing. Raises `ValueError` when nobody is left
    to.
    """
    pace = {rank: max(1.0, min(upload[rank], download[rank])) for rank in sorted(upload)}
    apart = {rank for pair in cut if pair <= pace.keys() for rank in pair}
    owners = [rank for rank in pace if rank not in apart]
    if not owners:
        raise ValueError("every member is cut off from another one: none can own a slice")
    others = len(pace) - 2
    within = max((others + len(owners)) / sum(pace[rank] for rank in owners), 1 / min(pace.values()))
    room = {rank: max(0.0, within * pace[rank] - 1) for rank in owners}
    if others <= 0 or sum(room.values()) < 1e-9:
        # Of two, each sends one vector whoever owns it: then only what adding up costs is shared.
        room = dict.fromkeys(owners, 1.0)
    whole = sum(room.values())
    return {rank: round(room.get(rank, 0.0) / whole * WHOLE) for rank in pace}
