"""Which tracker is asked, when the next one is, and what is remembered of it."""

from __future__ import annotations

import asyncio
import random

import pytest

from axonp2p.errors import Busy, MalformedMessage, Refused, StaleRow, TrackerUnreachable, Unreachable
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.http.http_caller import HttpCaller
from tests.fakes import ManualClock


class InOrder(random.Random):
    """Chance that changes no order."""

    def shuffle(self, x: object) -> None:
        pass


def lines(*names: str, clock: ManualClock | None = None) -> TrackerLines:
    health = TrackerHealth([f"https://{name}:7070" for name in names])
    return TrackerLines(health, clock or ManualClock(), InOrder(1))


def host(line: HttpCaller) -> str:
    return line.address.host


async def test_the_first_that_answers_is_enough() -> None:
    asked: list[str] = []

    async def ask(line: HttpCaller) -> str:
        asked.append(host(line))
        if host(line) == "away":
            raise Unreachable("cannot be reached")
        return f"from {host(line)}"

    known = lines("away", "lab", "spare")
    line, answer = await known.first(ask)
    assert (host(line), answer, asked) == ("lab", "from lab", ["away", "lab"])
    assert known.health.is_away("https://away:7070")
    assert [host(line) for line in known.in_order()] == ["lab", "spare", "away"]


async def test_one_that_is_slow_is_overtaken_and_let_go() -> None:
    let_go: list[str] = []

    async def ask(line: HttpCaller) -> str:
        if host(line) == "slow":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                let_go.append("slow")
                raise
        return host(line)

    _, answer = await lines("slow", "fast").first(ask, next_after_s=0.01)
    assert (answer, let_go) == ("fast", ["slow"])


async def test_a_slow_one_may_still_be_the_first_to_answer() -> None:
    others_asked = asyncio.Event()

    async def ask(line: HttpCaller) -> str:
        if host(line) == "slow":
            await others_asked.wait()
            return "slow"
        others_asked.set()
        await asyncio.Event().wait()
        return "never"

    _, answer = await lines("slow", "silent").first(ask, next_after_s=0.01)
    assert answer == "slow"


@pytest.mark.parametrize(
    "error", [Unreachable("away"), TrackerUnreachable("away"), Busy("full"), MalformedMessage("?"), Refused("no")]
)
async def test_who_does_not_help_is_passed_over(error: Exception) -> None:
    async def ask(line: HttpCaller) -> str:
        if host(line) == "one":
            raise error
        return "yes"

    _, answer = await lines("one", "two").first(ask)
    assert answer == "yes"


async def test_when_nobody_says_yes_a_refusal_is_the_answer() -> None:
    async def ask(line: HttpCaller) -> str:
        raise StaleRow("old") if host(line) == "two" else Unreachable("away")

    with pytest.raises(StaleRow):
        await lines("one", "two", "three").first(ask)


async def test_when_none_answers_each_is_named_with_its_reason() -> None:
    async def ask(line: HttpCaller) -> str:
        raise Unreachable(f"{line.called} cannot be reached", cause="connection refused")

    with pytest.raises(TrackerUnreachable, match="no tracker answers") as unreachable:
        await lines("one", "two").first(ask)
    assert unreachable.value.cause == (
        "tracker one:7070 cannot be reached (connection refused); "
        "tracker two:7070 cannot be reached (connection refused)"
    )
    assert unreachable.value.fix
    with pytest.raises(TrackerUnreachable, match="no tracker to ask"):
        await lines().first(ask)


async def test_one_may_be_preferred_while_it_is_well() -> None:
    async def ask(line: HttpCaller) -> str:
        if host(line) == "two" and away:
            raise Unreachable("away")
        return host(line)

    known, away = lines("one", "two"), False
    assert (await known.first(ask, before="https://two:7070"))[1] == "two"
    away = True
    assert (await known.first(ask, before="https://two:7070"))[1] == "one"
    asked: list[str] = []

    async def note(line: HttpCaller) -> str:
        asked.append(host(line))
        return host(line)

    await known.first(note, before="https://two:7070")
    assert asked == ["one"]


async def test_learnt_trackers_are_asked_after_those_of_the_settings() -> None:
    known = lines("one")
    known.learn(["https://learnt:7070", "rubbish", "https://one:7070"])
    assert [host(line) for line in known.in_order()] == ["one", "learnt"]


async def test_one_that_a_stranger_named_is_dialled_where_the_policy_allows_it() -> None:
    configured, learnt = "https://127.0.0.1:9", "https://127.0.0.2:9"
    known = TrackerLines(TrackerHealth([configured]), ManualClock(), InOrder(1))
    known.learn([learnt])
    said = {}
    for line in known.in_order():
        with pytest.raises(Unreachable) as caught:
            await line.round_trip()
        said[host(line)] = "refused" in caught.value.in_a_line
    assert said == {"127.0.0.1": True, "127.0.0.2": False}
    await known.close()
