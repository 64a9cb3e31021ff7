"""Whose steps may be done again by whom: those of a member by members that compute on the same kind of device. Pure.

A processor and a card draw other numbers by chance from one seed, and so do two cards with other numbers of processors:
dropout then leaves out other values, and honest steps lead elsewhere. No tolerance would tell that from a cheat.
"""

from __future__ import annotations

from collections.abc import Collection


class ComparableDevices:
    """What the members of one job compute on, in their own words, as far as that counts.

    It counts in jobs that ask for cards. In all others a peer could keep out of checks by a made-up word.
    """

    def __init__(self, *, cards: bool) -> None:
        self._cards = cards
        self._devices: dict[int, str] = {}
        self._told: set[int] = set()

    def note(self, rank: int, device: str) -> None:
        """A member has built its model there."""
        self._devices[rank] = device

    def alike(self, rank: int, other: int) -> bool:
        """Whether the steps of one lead where those of the other do."""
        return not self._cards or self._devices.get(rank) == self._devices.get(other)

    def checkable(self, ranks: Collection[int]) -> list[int]:
        """Those of them whose steps another of them can do again."""
        return [rank for rank in sorted(ranks) if any(self.alike(rank, other) for other in ranks if other != rank)]

    def newly_alone(self, ranks: Collection[int]) -> dict[int, str]:
        """Those of several whose steps none of the others can do again, and why; each is told once."""
        alone = set(ranks) - set(self.checkable(ranks)) - self._told if len(ranks) > 1 else set()
        self._told |= alone
        return {rank: f"no other peer computes on what it does ({self._devices.get(rank)})" for rank in sorted(alone)}
