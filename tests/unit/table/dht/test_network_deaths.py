"""A DHT of many nodes in virtual time: what it finds, and how fast, when parts of it die or datagrams get lost."""

from __future__ import annotations

import random

import pytest

from tests.laboratory.home_links import HomeLinks
from tests.laboratory.measuring import Trial
from tests.laboratory.swarms import AxonSwarm
from tests.laboratory.virtual_loop import VirtualLoop

pytestmark = pytest.mark.slow

SIZE = 50


@pytest.fixture
def trial():
    loop = VirtualLoop(HomeLinks(seed=7))
    trial = Trial(loop, AxonSwarm(random.Random(7)), seed=7)
    joined, put = loop.run(trial.build(SIZE, SIZE))
    assert joined.good == SIZE - 1
    assert put.good == SIZE
    yield trial
    assert loop.errors == []
    loop.close()


@pytest.mark.parametrize(("killed", "get_s", "set_s"), [(0.3, 0.6, 2.2), (0.5, 1.2, 3.3)])
def test_everything_is_found_when_many_die_at_once(trial, killed, get_s, set_s):
    trial.kill(killed)
    gets = trial.loop.run(trial.gets(100)).summary()
    sets = trial.loop.run(trial.puts(30)).summary()
    assert gets["good"] == sets["good"] == 1
    assert gets["p95_s"] <= get_s
    assert sets["p95_s"] <= set_s


def test_a_row_that_was_renewed_among_the_dead_is_the_one_that_is_found(trial):
    trial.kill(0.3)
    assert trial.loop.run(trial.puts(40)).summary()["good"] == 1
    # `gets` counts only the newest version of a row as found.
    assert trial.loop.run(trial.gets(100)).summary()["good"] == 1


def test_lost_datagrams_lose_nothing(trial):
    trial.loop.links.loss = 0.02
    assert trial.loop.run(trial.puts(40)).summary()["good"] == 1
    assert trial.loop.run(trial.gets(100)).summary()["good"] >= 0.99


def test_queries_find_as_many_as_they_ask_for(trial):
    assert trial.loop.run(trial.queries(10)).summary()["good"] == 1
    trial.kill(0.3)
    assert trial.loop.run(trial.queries(10)).summary()["good"] == 1
