"""FIND, from a client's side: trackers first, the DHT after a moment, one table out of all that they say."""

from __future__ import annotations

from typing import Any

from axonp2p.table.sightings import Sight

DHT_AFTER_S = 0.3
"""The DHT is asked when the trackers have not shown enough by then; at once when none is known."""


class SharedTable:
    """The table that several trackers and the DHT hold. `close()` it at the end."""

    async def find(self, need: dict[str, Any], count: int, *, enough: int, near: bytes = b"") -> Sight:
        """Peers that meet `need` (a `peers.capability.Need` as a map), about `count` of them.

        Sources are asked until `enough` peers are seen, or all have said what they know; near ones come first when
        the coordinate `near` is given. Raises `TrackerUnreachable`, naming each source with its reason, when no source
        answers.
        """
        raise NotImplementedError

    async def survey(self, need: dict[str, Any], count: int) -> Sight:
        """Ask every source and wait for all of them, a bounded while. Raises nothing of the family."""
        raise NotImplementedError
