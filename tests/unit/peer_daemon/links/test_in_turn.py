"""Whose turn it is on the owner's line, and who need not wait for one."""

from __future__ import annotations

import asyncio

import pytest

from peer_daemon.links.in_turn import WORDS_AHEAD_S, InTurn
from peer_daemon.links.turns import Turns


def served(turns: Turns, count: int) -> list[int]:
    return [number for number, _ in (turns.next() or (0, 0) for _ in range(count))]


def test_lanes_share_by_bytes_however_large_their_frames_are():
    turns = Turns()
    small, large, gone = 1000, 4000, {"small": 0, "large": 0}
    waiting = {turns.ask("small", small): "small", turns.ask("large", large): "large"}
    for _ in range(500):
        number, count = turns.next() or (0, 0)
        lane = waiting.pop(number)
        gone[lane] += count
        waiting[turns.ask(lane, count)] = lane
    assert gone["small"] == pytest.approx(gone["large"], abs=2 * large)


def test_a_lane_that_was_idle_gets_no_more_than_its_share_later():
    turns = Turns()
    for _ in range(10):
        turns.ask("busy", 1000)
    assert served(turns, 5) == [1, 2, 3, 4, 5]
    late = [turns.ask("late", 1000) for _ in range(3)]
    assert served(turns, 6) == [late[0], 6, late[1], 7, late[2], 8]


def test_who_was_forgotten_is_passed_over():
    turns = Turns()
    numbers = [turns.ask(lane, 1) for lane in "abc"]
    turns.forget(numbers[1])
    assert served(turns, 3) == [numbers[0], numbers[2], 0]


async def test_without_a_limit_nobody_waits():
    await InTurn(0).bulk("lane", 10**12)


async def test_words_go_while_bulk_waits_but_not_in_a_flood():
    line = InTurn(1000)
    await line.bulk("a", 250)
    await line.bulk("a", 10_000)
    held_back = asyncio.create_task(line.bulk("b", 1))
    await line.word(100)
    assert not held_back.done()
    await line.word(int(2000 * WORDS_AHEAD_S))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(line.word(1), 0.01)
    held_back.cancel()


async def test_who_gives_up_waiting_leaves_the_turn_to_others():
    line = InTurn(100_000)
    await line.bulk("a", 30_000)
    waiting = [asyncio.create_task(line.bulk(lane, 1000)) for lane in "abc"]
    await asyncio.wait(waiting, timeout=0)
    waiting[0].cancel()
    await asyncio.gather(*waiting[1:])
