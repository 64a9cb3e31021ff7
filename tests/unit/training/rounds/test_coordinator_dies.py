"""A client that dies at any moment, in virtual time, while its peers wait: no round is done twice, and all are right.

The members, the coordinator's mind and the lines between them are the real ones; what a state must be is computed
beside them from what members moved (`exchange_checks`).
"""

from __future__ import annotations

import random

import pytest

from axonp2p.training.rounds.phases import Phase
from tests.laboratory.exchange_checks import accepted_of, broken_promises
from tests.laboratory.exchange_world import setting_of
from tests.laboratory.mortal_client import MortalClient


def calm_seconds(seed: int) -> float:
    client = MortalClient(setting_of(seed))
    client.world.run()
    return client.world.agenda.now


@pytest.mark.parametrize("seed", range(12))
def test_whenever_it_dies_the_job_goes_on_where_it_was(seed: int) -> None:
    chance = random.Random(seed)
    client = MortalClient(setting_of(seed))
    seconds = calm_seconds(seed)
    for _ in range(chance.choice([1, 2, 4])):
        client.dies_at(chance.uniform(0, seconds), chance.choice([0.01, 1.0, 60.0]))
    client.world.run()
    world = client.world
    assert world.desk.rounds.phase is Phase.TRAINED
    assert list(broken_promises(world)) == []
    rounds = list(range(world.setting.rounds))
    assert [action.round for action in accepted_of(world)] == rounds  # each was trained to its end once
    assert client.disk.booked == rounds[: len(client.disk.booked)]
    assert len(client.disk.booked) >= len(rounds) - 1  # the last state may still be on its way
    for went_on in client.went_on[1:]:
        assert went_on.rounds <= world.setting.rounds
