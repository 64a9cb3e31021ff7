"""What lies here of clients that were cut off: bounded for one client, one household, in number and in bytes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from peer_daemon.bundles.kept_bundles import LEAST_AGE_S, MOST_KEPT, KeptBundles
from tests.fakes import ManualClock

MB = 2**20


class Kept:
    """Bundles of 1 MiB at most ten together, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.bundles = KeptBundles(folder, 10 * MB, self.clock.monotonic)

    def keep(self, client: str, number: int = 0, *, source: str = "", size: int = MB) -> Path | None:
        """Keep one that has a file in it."""
        path = self.bundles.keep(client, source or f"{client}'s house", bytes([number]), size)
        if path is not None:
            path.mkdir()
        return path

    def has(self, client: str, number: int = 0) -> bool:
        return (client, bytes([number])) in self.bundles._kept


@pytest.fixture
async def kept(tmp_path: Path) -> Iterator[Kept]:
    found = Kept(tmp_path)
    yield found
    found.bundles.close()
    await asyncio.get_running_loop().shutdown_default_executor()
    assert not os.listdir(tmp_path)


async def test_who_comes_back_has_its_bundle_and_nobody_else(kept: Kept) -> None:
    path = kept.keep("ada")
    assert kept.bundles.take("bob", b"\0") is None
    assert kept.bundles.take("ada", b"\0") == path
    assert kept.bundles.take("ada", b"\0") is None
    assert path
    path.rmdir()


async def test_one_client_has_one_bundle_here_however_often_it_is_cut_off(kept: Kept) -> None:
    for number in range(20):
        kept.keep("ada", number)
        kept.clock.time += LEAST_AGE_S
    assert len(kept.bundles._kept) == 1
    assert kept.has("ada", 19)
    assert kept.keep("ada", 19) is not None


async def test_a_household_with_many_keys_has_two(kept: Kept) -> None:
    assert kept.keep("one", source="house")
    assert kept.keep("two", source="house")
    assert kept.keep("three", source="house") is None
    kept.clock.time += LEAST_AGE_S
    assert kept.keep("four", source="house")
    assert not kept.has("one")


async def test_all_together_are_bounded_in_number_and_none_goes_before_its_time(kept: Kept) -> None:
    for number in range(MOST_KEPT):
        assert kept.keep(f"client {number}")
    assert kept.keep("ada") is None
    kept.clock.time += LEAST_AGE_S
    assert kept.keep("ada")
    assert not kept.has("client 0")


async def test_all_together_are_bounded_in_bytes(kept: Kept) -> None:
    assert kept.keep("ada", size=11 * MB) is None
    assert kept.keep("bob", size=6 * MB)
    assert kept.keep("eve", size=6 * MB) is None
    assert kept.keep("dan", size=4 * MB)
    kept.clock.time += LEAST_AGE_S
    assert kept.keep("eve", size=6 * MB)
    assert kept.has("dan")
    assert not kept.has("bob")
