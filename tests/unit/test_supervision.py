"""What nobody thought of ends one look, and never its program."""

from __future__ import annotations

import asyncio

import pytest

from axonp2p.errors import AxonError, Busy
from axonp2p.supervision import alone, keep_up, one_look


def test_what_nobody_thought_of_becomes_an_error_of_the_family() -> None:
    with pytest.raises(AxonError) as caught, one_look("a look at a log"):
        raise ValueError("year 285427423 is out of range")
    assert caught.value.in_a_line == (
        "a mistake of ours in a look at a log (ValueError: year 285427423 is out of range)"
    )


@pytest.mark.parametrize("error", [Busy("full"), OSError("no route"), asyncio.CancelledError()])
def test_what_callers_expect_passes_as_it_is(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, one_look("a look"):
        raise error
    assert caught.value is error


async def test_a_task_that_is_needed_is_begun_again_after_pauses_that_grow() -> None:
    pauses: list[float] = []
    ends = [ValueError(), Busy("full"), KeyError("x"), *[ValueError()] * 6, None]

    async def run() -> None:
        end = ends.pop(0)
        if end is not None:
            raise end

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    await keep_up("announcing", run, pause)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def test_a_cancelled_task_is_not_begun_again() -> None:
    async def run() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await keep_up("announcing", run)


@pytest.mark.parametrize("error", [Busy("full"), OSError("no route"), ValueError("nobody thought of it")])
async def test_work_that_nobody_hears_of_ends_nothing_else(error: Exception) -> None:
    async def work() -> None:
        raise error

    await alone("a probe", work())
