"""Jobs with cheats, over many seeds."""

from __future__ import annotations

import pytest

from axonp2p.verification.judgement import Outcome
from axonp2p.verification.rates import Trust
from tests.laboratory.checked_job import CheckedJob, Nature, checks_until_found

pytestmark = pytest.mark.slow

HONEST = [Nature(machine=machine) for machine in (0, 0, 0, 1, 1, 2, 3, 4)]


def test_nobody_is_convicted_in_a_thousand_honest_rounds_on_machines_of_five_kinds():
    rounds = 0
    for seed in range(8):
        result = CheckedJob(HONEST, seed).run(20)
        assert not result.gone
        assert set(result.outcomes) == {Outcome.PASSED}
        rounds += result.honest_rounds
    assert rounds == 1280


@pytest.mark.parametrize("skips", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("leaves_out", [1, 4, 8])
def test_who_skips_work_is_convicted_within_the_checks_that_are_computed(skips, leaves_out):
    lazy = Nature(machine=1, skips=skips, leaves_out=leaves_out)
    allowed = checks_until_found(skips, 0.99)
    late = 0
    for seed in range(3):
        result = CheckedJob([*HONEST[:5], lazy, *HONEST[5:7], lazy], seed, wished=0.2).run(40)
        assert result.convicted == set(result.gone) == {5, 8}, (seed, result.gone)
        late += sum(checks > allowed for checks in result.checks_until_gone.values())
    assert late <= 1  # of 6, where 0.06 are to be expected


def test_who_sends_the_work_of_another_is_convicted_by_the_first_check():
    for seed in range(3):
        result = CheckedJob([*HONEST[:6], Nature(copies=True)], seed, wished=0.2).run(10)
        assert list(result.gone) == [6]
        assert result.checks_until_gone == {6: 1}


@pytest.mark.parametrize("rounds", [1, 6])
def test_who_cheats_in_the_last_round_only_is_convicted_before_the_job_ends(rounds):
    for seed in range(10):
        lazy = Nature(machine=1, skips=1.0, begins=rounds - 1)
        result = CheckedJob([*HONEST[:5], lazy, *HONEST[5:7]], seed, wished=0.2).run(rounds)
        assert result.convicted == set(result.gone) == {5}, (seed, result.gone)


@pytest.mark.parametrize("lies", [0.2, 1.0])
def test_who_accuses_falsely_convicts_nobody_but_itself(lies):
    caught = 0
    for seed in range(3):
        result = CheckedJob([*HONEST, Nature(lies=lies), Nature(machine=2, lies=lies)], seed, wished=0.1).run(20)
        assert set(result.gone) <= {8, 9}, (seed, result.gone)
        caught += len(result.gone)
    assert caught >= 5


def test_all_of_it_at_once():
    natures = [*HONEST, Nature(skips=0.5), Nature(machine=2, copies=True), Nature(machine=1, lies=0.5)]
    for seed in range(3):
        gone = CheckedJob(natures, seed, wished=0.2).run(30).gone
        assert set(gone) == {8, 9, 10}, (seed, gone)


@pytest.mark.parametrize("skips", [0.5, 1.0])
def test_a_cheat_that_does_not_come_to_its_own_ends_goes_and_is_not_told_from_an_honest_one_that_does_not(skips):
    lazy = Nature(machine=1, skips=skips, stands_by=False)
    convicted = 0
    for seed in range(6):
        result = CheckedJob([*HONEST[:6], lazy], seed, wished=0.2).run(40)
        assert set(result.gone) == {6}, (seed, result.gone)
        assert result.convicted <= {6}
        convicted += len(result.convicted)
    assert convicted < 6
    assert skips < 1 or not convicted


@pytest.mark.parametrize("members", [2, 3, 8])
def test_where_tasks_keep_something_between_steps_nobody_is_convicted_or_has_to_go(members):
    for seed in range(40):
        natures = [Nature(machine=place % 2, keeps=True) for place in range(members)]
        result = CheckedJob(natures, seed, wished=0.2).run(20)
        assert not result.convicted
        assert not result.gone
        assert set(result.outcomes) <= {Outcome.UNDECIDED}
        assert result.off == ["the same steps hardly ever lead to the same end twice"]


def test_who_alone_keeps_something_between_steps_is_not_convicted():
    for seed in range(40):
        result = CheckedJob([*HONEST[:3], Nature(keeps=True)], seed, wished=0.2).run(10)
        assert not result.convicted
        assert set(result.gone) <= {3}


def test_where_no_machine_comes_to_the_same_end_twice_nobody_is_convicted():
    odd = [Nature(machine=machine) for machine in range(1, 8)]
    for seed in range(3):
        result = CheckedJob(odd, seed, wished=0.2, noise=3.0).run(10)
        assert not result.convicted
        assert result.off == ["the same steps hardly ever lead to the same end twice"]


def test_among_trusted_keys_at_most_the_wished_share_is_done_again():
    for wished in (0.01, 0.05):
        new = CheckedJob(HONEST, 1, wished=wished).run(40)
        trusted = CheckedJob(HONEST, 1, wished=wished, trust=Trust(passed=10)).run(60)
        assert trusted.steps_redone <= wished * trusted.steps_taken
        assert wished < new.steps_redone / new.steps_taken <= 4.2 * wished
