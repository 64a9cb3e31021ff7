"""Whole jobs in virtual time, on simulated lines: the real coordinator's mind, real members, real steps of torch."""

from __future__ import annotations

import pytest

from axonp2p.training.round_messages import CheckEnded, ChecksCutShort, ChecksImpossible, MemberDropped, Trained
from axonp2p.training.trainer.local_trainer import LocalTrainer
from axonp2p.verification.judgement import Outcome
from tests.laboratory.real_job import real_job
from tests.unit.training.worker.test_redo import LISTS, SGD, TASK, Lazy

pytestmark = pytest.mark.slow

SLOWER = SGD.replace("lr=0.1", "lr=0.005")


class Frozen(LocalTrainer):
    """Does its steps, and then says that its optimiser remembers what drowns every gradient."""

    def _next_step(self, now):
        flops = super()._next_step(now)
        for remembered in self._optimizers.each[0].state.values():
            if remembered["exp_avg"].abs().max() < 1e6:
                remembered["exp_avg"].fill_(1e9)
                remembered["exp_avg_sq"].fill_(1e18)
        return flops


def job(folder, kinds, *, text=TASK, **more):
    """A job of four, one step of the trainers' kind for each rank; gives what the client decided."""
    return real_job(folder, text, kinds=kinds, **more).only


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("optimizer", ["", SLOWER])
def test_honest_members_pass_every_check_to_the_bit(tmp_path, overlap, optimizer):
    only = job(tmp_path, {}, overlap=overlap, text=TASK + optimizer)
    checked = only(CheckEnded)
    assert len(checked) > 8
    assert {action.judgement.outcome for action in checked} == {Outcome.PASSED}
    assert {action.judgement.distance for action in checked} == {0.0}
    assert all(action.judgement.step > 0.05 for action in checked)
    assert not only(MemberDropped)


@pytest.mark.parametrize("overlap", [False, True])
def test_one_that_takes_every_second_step_only_is_convicted_and_has_to_go(tmp_path, overlap):
    only = job(tmp_path, {2: Lazy}, overlap=overlap)
    assert [action.rank for action in only(MemberDropped)] == [2]
    (convicted,) = [action for action in only(CheckEnded) if action.convicted]
    assert (convicted.of, convicted.convicted, convicted.judgement.outcome) == (2, [2], Outcome.CONVICTED)
    assert len(convicted.by) == 2


@pytest.mark.parametrize("seed", [1, 2])
def test_one_that_cheats_in_the_only_round_of_a_job_is_convicted_before_the_job_ends(tmp_path, seed):
    only = job(tmp_path, {2: Lazy}, rounds=1, wished=0.5, seed=seed)
    assert [action.rank for action in only(MemberDropped)] == [2]
    assert [action.convicted for action in only(CheckEnded) if action.convicted] == [[2]]
    assert [action.members for action in only(Trained)] == [[0, 1, 3]]
    assert not only(ChecksCutShort)


def test_one_whose_optimiser_remembers_what_no_gradient_made_is_convicted(tmp_path):
    only = job(tmp_path, {1: Frozen})
    assert [action.rank for action in only(MemberDropped)] == [1]


def test_a_job_whose_optimiser_cannot_be_committed_to_goes_on_unchecked(tmp_path):
    only = job(tmp_path, {}, text=TASK + LISTS.replace("lr=0.1", "lr=0.005"))
    assert not only(CheckEnded)
    assert not only(MemberDropped)
    (off,) = only(ChecksImpossible)
    assert off.reason == "the optimiser remembers history as a list"
