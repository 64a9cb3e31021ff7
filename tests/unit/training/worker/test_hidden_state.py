"""Tasks that keep state where a redo may not find it, or may not leave it: in jobs of real members with many checks.

Whatever a task keeps, the checks change nothing of its training, and nobody is convicted or has to go.
"""

from __future__ import annotations

import pytest

from axonp2p.training.round_messages import CheckEnded, ChecksImpossible, MemberDropped
from tests.laboratory.hidden_states import CHECKABLE, HIDDEN, TASKS, forget_hooks
from tests.laboratory.real_job import real_job

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("kind", "seed"), [(kind, seed) for seed, kind in enumerate(TASKS)])
def test_checks_change_nothing_of_training_and_blame_nobody(tmp_path, kind, seed):
    text = TASKS[kind].replace("FILES", str(tmp_path / "state"))
    plain, checked = (_trained(tmp_path, text, wished, seed) for wished in (0.0, 0.5))
    assert checked.moves == plain.moves
    assert checked.losses == plain.losses
    assert all(move > 0 for moves in checked.moves.values() for move in moves)
    assert not checked.only(MemberDropped)
    outcomes = [action.judgement.outcome.name for action in checked.only(CheckEnded)]
    assert not any(action.convicted for action in checked.only(CheckEnded))
    off = [action.reason for action in checked.only(ChecksImpossible)]
    if kind in CHECKABLE:
        assert set(outcomes) == {"PASSED"}
        assert not off
    else:
        assert kind in HIDDEN
        assert len(off) == 1
        assert "PASSED" not in outcomes


def _trained(folder, text, wished, seed):
    try:
        return real_job(folder, text, members=3, wished=wished, rounds=2, seed=seed)
    finally:
        forget_hooks()
