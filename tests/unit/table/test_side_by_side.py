"""Trackers that are asked side by side: those that say nothing hold up nobody."""

from __future__ import annotations

import asyncio

import pytest

from axonp2p.table.side_by_side import ask_all


async def ask(seconds: float) -> str:
    await asyncio.sleep(abs(seconds))
    return "no" if seconds < 0 else "yes"


def late(seconds: float, had: float) -> str:
    assert had < 60
    return "late"


async def asked(*seconds: float) -> list[str]:
    async with asyncio.timeout(60):
        return await ask_all(seconds, ask, is_answer=lambda said: said == "yes", late=late)


@pytest.mark.slow
async def test_who_says_nothing_is_left_once_somebody_answered() -> None:
    assert await asked(1000, 0, -0.01, 1000) == ["late", "yes", "no", "late"]


@pytest.mark.slow
async def test_a_failure_is_no_answer_to_hurry_for() -> None:
    assert await asked(-0.01, 2.0) == ["no", "yes"]


async def test_nobody_is_asked() -> None:
    assert await asked() == []
