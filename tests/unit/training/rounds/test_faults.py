"""Whole jobs in virtual time, in which everything happens that may happen to a round.

What is checked after each stands in tests/laboratory/exchange_checks.py and exchange_history.py; thousands more are
played by scripts/simulate_exchange.
"""

from __future__ import annotations

import pytest
import torch

from axonp2p.jobs.aggregation import MEAN, may_lie
from axonp2p.training.round_messages import MemberDropped, RoundAccepted
from axonp2p.training.rounds.phases import Phase
from tests.laboratory.exchange_checks import accepted_of, broken_promises, lost_on_the_way, redone_of
from tests.laboratory.exchange_faults import FOR_JOINERS, MOMENTS, Moment, watch_frames
from tests.laboratory.exchange_history import KINDS, kinds_of, play
from tests.laboratory.exchange_peer import first_of
from tests.laboratory.exchange_world import ROUNDS, World, setting_of
from tests.laboratory.faults import Fault

pytestmark = pytest.mark.slow

HISTORIES = 12
"""Of each fault, spread over the moments at which it can be committed."""


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The vectors are tiny, and tests run side by side."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def calm(seed, **more):
    world = World(setting_of(seed), **more)
    watch_frames(world)
    world.run()
    return world


@pytest.mark.parametrize("seed", range(8))
def test_where_nothing_goes_wrong_nothing_is_redone_and_nothing_is_lost(seed):
    world = calm(seed)
    assert len(accepted_of(world)) == ROUNDS
    assert not redone_of(world)
    assert not list(broken_promises(world))
    assert not lost_on_the_way(world)


def test_a_history_is_the_same_every_time():
    one, other = play(7)[1], play(7)[1]
    assert one.agenda.now == other.agenda.now
    assert [action.state for action in accepted_of(one)] == [action.state for action in accepted_of(other)]


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name.lower())
def test_whatever_happens_the_job_keeps_its_promises(fault):
    moments = MOMENTS[fault]
    committed = []
    histories = HISTORIES // 2 if fault in FOR_JOINERS else HISTORIES  # those take larger states
    for number in range(histories):
        outcome, world, _ = play(1000 * number + 17, [(fault, moments[number % len(moments)])])
        assert not outcome.wrong, (outcome, world.story())
        assert outcome.phase is Phase.TRAINED
        committed.append(outcome.committed)
    assert sum(committed) > histories / 2


def test_two_faults_at_once():
    for seed in range(2 * len(KINDS), 3 * len(KINDS), 3):
        outcome, world, _ = play(seed)
        assert len(kinds_of(seed)) == 2
        assert not outcome.wrong, (outcome, world.story())


def test_a_liar_is_dropped_and_the_others_go_on_from_before_its_lie():
    found = []
    for seed in range(12):
        outcome, world, (lie,) = play(seed, [(Fault.SLICE_LYING, Moment.GATHERING)])
        if len(lie.deceived) > max(1, may_lie(MEAN, len(world.setting.homes))):
            gone = [action.rank for _, action in world.desk.seen if isinstance(action, MemberDropped)]
            assert gone == [lie.victim]
            assert outcome.redone == 1
            found.append(seed)
    assert found


def test_a_wrong_piece_is_named():
    assert any(play(seed, [(Fault.PIECE_WRONG, Moment.BETWEEN)])[0].named for seed in range(6))


def test_a_frozen_member_is_back_within_the_job():
    back = []
    for seed in range(8):
        _, world, (frozen,) = play(seed, [(Fault.MEMBER_FROZEN, Moment.FIRST_LEG)])
        last = [action for _, action in world.desk.seen if isinstance(action, RoundAccepted)][-1]
        if redone_of(world) and frozen.victim in last.reports:
            back.append(seed)
    assert back


def test_a_job_that_is_resumed_begins_with_the_state_that_the_client_kept():
    setting = setting_of(3)
    kept = first_of(setting.layout, 99)
    world = calm(3, start_state=kept)
    assert len(accepted_of(world)) == ROUNDS
    assert world.begins_with is kept
    assert not list(broken_promises(world))
