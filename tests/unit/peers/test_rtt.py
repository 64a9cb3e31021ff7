"""Distances are measured side by side, and latecomers are not waited for."""

from __future__ import annotations

import asyncio

import pytest

from axonp2p.peers import rtt
from axonp2p.peers.rtt import PingTarget, measure
from axonp2p.peers.selection import Distance
from axonp2p.transport.dial_policy import NO_ADDRESS, NOT_REACHED, DialPolicy
from axonp2p.transport.ways import BareWhereabouts
from tests.fakes import HERE, key_of

real_distance = rtt._distance


def targets(*names: str) -> dict[str, PingTarget]:
    return {
        key_of(name).peer_id: PingTarget(name, BareWhereabouts(key_of(name).peer_id, ["192.0.2.1:1"], bytes(32)))
        for name in names
    }


@pytest.fixture(autouse=True)
def distances(monkeypatch: pytest.MonkeyPatch) -> None:
    async def distance(target: PingTarget, policy: DialPolicy) -> Distance:
        if target.name == "silent":
            await asyncio.Event().wait()
        if target.name == "dead":
            return Distance(None, "connection refused")
        return Distance({"near": 0.01, "far": 2.0}[target.name])

    monkeypatch.setattr(rtt, "_distance", distance)
    monkeypatch.setattr(rtt, "LATECOMERS_S", 0.01)


async def test_each_has_its_distance_or_its_reason() -> None:
    near, dead = targets("near", "dead")
    assert await measure(targets("near", "dead"), HERE) == {
        near: Distance(0.01),
        dead: Distance(None, "connection refused"),
    }
    assert await measure({}, HERE) == {}


async def test_with_enough_near_ones_latecomers_are_not_waited_for() -> None:
    near, silent = targets("near", "silent")
    found = await measure(targets("near", "silent"), HERE, enough=1, near_s=0.25)
    assert found[near] == Distance(0.01)
    assert found[silent].seconds is None
    assert found[silent].given_up


async def test_who_is_too_far_is_not_enough() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await measure(targets("far", "silent"), HERE, enough=1, near_s=0.25)


async def test_what_answers_near_a_tracker_is_not_told_to_whose_job_it_carries_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rtt, "_distance", real_distance)
    ada = key_of("ada").peer_id
    nobody_there = {ada: PingTarget("ada", BareWhereabouts(ada, ["127.0.0.1:9"], bytes(32)))}
    hosted = DialPolicy(lambda: ["127.0.0.1"], tells_why=False)
    assert "ada cannot be reached" in (await measure(nobody_there, HERE))[ada].why_not
    assert (await measure(nobody_there, hosted))[ada].why_not == NOT_REACHED
    assert (await measure(nobody_there, DialPolicy(lambda: ["8.8.8.8"])))[ada].why_not == NO_ADDRESS
