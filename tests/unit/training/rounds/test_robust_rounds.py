"""Whole jobs in virtual time by rules that bear liars: rounds are accepted, and redone, as with the mean."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from axonp2p.jobs.aggregation import AGGREGATIONS
from axonp2p.training.options import ExchangeOptions
from axonp2p.training.round_messages import Chosen, MemberDropped, RoundAccepted
from tests.laboratory.exchange_lines import Home
from tests.laboratory.exchange_world import Setting, World, setting_of

ROBUST = AGGREGATIONS[1:]


def setting(members: int, **options: object) -> Setting:
    plain = ExchangeOptions(compression="2-bit", exchange_every=2, outer_learning_rate=1.0, outer_momentum=0.0)
    return dataclasses.replace(
        setting_of(1),
        homes=tuple(Home(300e3, 0.01, 0.0) for _ in range(members)),
        step_s=(0.2,) * members,
        min_peers=1,
        rounds=3,
        steps=4,
        options=msgspec.structs.replace(plain, **options),
    )


def seen(world: World, kind: type) -> list[object]:
    return [action for _, action in world.desk.seen if isinstance(action, kind)]


@pytest.mark.parametrize("name", ROBUST)
@pytest.mark.parametrize("overlap", [False, True])
def test_members_agree_to_the_bit_in_every_round(name: str, overlap: bool) -> None:
    world = World(setting(5, aggregation=name, overlap=overlap))
    world.run()
    assert len(seen(world, RoundAccepted)) == 3, world.story()
    assert not any(attempt for _, attempt in world.rounds)
    (chosen,) = seen(world, Chosen)
    assert (chosen.choice.settings.rule.name, chosen.choice.settings.rule.hostile) == (name, 1)


@pytest.mark.parametrize("name", ROBUST)
def test_with_one_less_fewer_liars_are_borne_and_that_is_told(name: str) -> None:
    world = World(setting(5, aggregation=name))
    world.agenda.at(1.2, lambda: world.kill(4, notice_s=1.0))
    world.run()
    assert [action.rank for action in seen(world, MemberDropped)] == [4]
    assert len(seen(world, RoundAccepted)) == 3, world.story()
    told = [action.choice.settings.rule.hostile for action in seen(world, Chosen)]
    assert told[0] == 1
    assert told[-1] == (0 if name == "multi-krum" else 1)
