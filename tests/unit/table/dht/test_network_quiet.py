"""A DHT that nobody uses is silent, but for the refreshes of its tables."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.laboratory.home_links import HomeLinks
from tests.laboratory.measuring import Trial
from tests.laboratory.swarms import AxonSwarm
from tests.laboratory.virtual_loop import VirtualLoop

SIZE = 40
HOUR_S = 3600.0


@pytest.mark.slow
def test_an_idle_network_sends_nothing_but_refreshes():
    loop = VirtualLoop(HomeLinks(seed=3))
    swarm = AxonSwarm(random.Random(3))
    trial = Trial(loop, swarm, seed=3)
    loop.run(trial.build(SIZE, SIZE))
    loop.run(trial.gets(20))
    loop.run(asyncio.sleep(10))
    for node in swarm.nodes:
        node.traffic.messages_out.clear()

    assert loop.run(trial.idle(600.0)) == 0  # no refresh is due within an hour of the last look-up

    loop.run(asyncio.sleep(2 * HOUR_S))
    sent = sum((node.traffic.messages_out for node in swarm.nodes), start=type(swarm.nodes[0].traffic.messages_out)())
    assert set(sent) <= {"find", "find-answer", "hi", "hi-answer", "find-again", "hi-again"}
    # Each part of a table is looked up once an hour, at some ten questions a look-up.
    parts = 10
    assert 0 < sent["find"] <= SIZE * 2 * parts * 12
    assert not loop.errors
    loop.close()
