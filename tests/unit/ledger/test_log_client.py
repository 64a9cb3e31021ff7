"""Pages of a log: who reads all of it stays within what a tracker gives, and is not turned away for it."""

from __future__ import annotations

import pytest

from axonp2p.errors import TooOften
from axonp2p.ledger.log_client import MOST_WAITS, page_by_page


class Tracker:
    """Gives a page after so many refusals."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.asked = 0

    async def page(self) -> str:
        self.asked += 1
        if self.asked <= self.refusals:
            raise TooOften("too many requests", wait_s=0)
        return "page"


async def test_a_page_that_was_asked_for_too_soon_is_asked_for_again() -> None:
    tracker = Tracker(MOST_WAITS)
    assert await page_by_page(tracker.page) == "page"
    assert tracker.asked == MOST_WAITS + 1


async def test_a_tracker_that_gives_nothing_is_not_waited_for_without_end() -> None:
    tracker = Tracker(99)
    with pytest.raises(TooOften):
        await page_by_page(tracker.page)
    assert tracker.asked == MOST_WAITS + 1
