"""One look-up: whom to ask next on the way to the nodes nearest to a key (pure).

No rounds: whoever answers makes room for the next question at once, a slow one frees its place and counts still when it
answers, and the end is reached when the nearest *responsive* nodes have answered. So a dead node costs nothing but its
soft limit, where the package's rounds wait 5 s for each.
"""

from __future__ import annotations

from collections.abc import Iterable

from axonp2p.table.dht.contact import Contact

ALPHA = 4
WIDTH = 8
MOST_OF_A_NETWORK = 2


class Lookup:
    """The state of one look-up. The caller sends, waits, and tells what happened."""

    def __init__(
        self, target: bytes, seeds: Iterable[Contact], *, own_id: bytes = b"", alpha: int = ALPHA, width: int = WIDTH
    ) -> None:
        raise NotImplementedError

    def next(self) -> list[Contact]:
        """Whom to ask now: as many as there are free places. They count as asked."""
        raise NotImplementedError

    def answered(self, contact: Contact, contacts: Iterable[Contact]) -> None:
        """It answered and named these."""
        raise NotImplementedError

    def slow(self, contact: Contact) -> None:
        """Its soft limit is over: its place is free for another."""
        raise NotImplementedError

    def failed(self, contact: Contact) -> None:
        """It did not answer, or nonsense."""
        raise NotImplementedError

    @property
    def done(self) -> bool:
        """Whether the nearest responsive nodes have answered, or nobody is left to be asked or waited for."""
        raise NotImplementedError

    @property
    def nearest(self) -> list[Contact]:
        """Those that answered, nearest first, at most the width."""
        raise NotImplementedError
