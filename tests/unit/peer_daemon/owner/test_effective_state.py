"""From what the owner said and the policy decided to what the daemon does and says."""

from __future__ import annotations

import pytest

from peer_daemon.idle.decision import Act, Decision, Readings, Why
from peer_daemon.idle.idle_settings import IdleSettings
from peer_daemon.owner.effective_state import StandingOrders, effective_state_of, may_stand_by

FREE = Decision(Act.RUN, Why.FREE, "nothing else needs the machine")
BUSY = Decision(Act.WAIT, Why.BUSY, "another program uses 87 % CPU (limit 25 %): firefox")


def test_nothing_to_do_is_said_plainly():
    effective_state = effective_state_of(FREE, StandingOrders(), no_sandbox="", jobs=0)
    assert (effective_state.state, effective_state.sentence, effective_state.takes_work) == (
        "ready",
        "no job wants this machine now",
        True,
    )


def test_a_job_runs_while_nothing_else_needs_the_machine():
    effective_state = effective_state_of(FREE, StandingOrders(), no_sandbox="", jobs=2)
    assert (effective_state.state, effective_state.act, effective_state.takes_work) == ("training", Act.RUN, True)
    assert effective_state.sentence == "works on 2 jobs: nothing else needs the machine"


def test_while_the_owner_is_busy_it_waits_and_takes_no_work():
    effective_state = effective_state_of(BUSY, StandingOrders(), no_sandbox="", jobs=1)
    assert (effective_state.state, effective_state.act, effective_state.why, effective_state.takes_work) == (
        "waiting",
        Act.WAIT,
        Why.BUSY,
        False,
    )
    assert effective_state.sentence == BUSY.sentence


def test_the_owners_word_comes_before_the_policy():
    effective_state = effective_state_of(
        BUSY, StandingOrders(paused=True, until=100.0), no_sandbox="", jobs=1, until_text="14:10"
    )
    assert (effective_state.state, effective_state.act, effective_state.until) == ("paused", Act.HAND_BACK, 100.0)
    assert effective_state.sentence == "paused by you until 14:10"


def test_what_is_finished_runs_on_but_gets_no_company():
    effective_state = effective_state_of(FREE, StandingOrders(finishing=True), no_sandbox="", jobs=1)
    assert (effective_state.state, effective_state.act, effective_state.takes_work) == ("finishing", Act.RUN, False)


def test_without_a_sandbox_nothing_else_counts():
    effective_state = effective_state_of(
        FREE, StandingOrders(paused=True), no_sandbox="bubblewrap is not installed", jobs=0
    )
    assert (effective_state.state, effective_state.sentence) == ("refused", "bubblewrap is not installed")


def test_clients_hear_why_without_what_the_owner_does():
    busy = effective_state_of(BUSY, StandingOrders(), no_sandbox="", jobs=1)
    assert busy.for_clients == "its owner's programs need the processor"
    paused = effective_state_of(FREE, StandingOrders(paused=True, until=1.0), no_sandbox="", jobs=1, until_text="15:19")
    assert (paused.sentence, paused.for_clients) == ("paused by you until 15:19", "its owner paused it until 15:19")


@pytest.mark.parametrize("why", Why)
def test_every_reason_has_words_for_clients(why: Why):
    told = effective_state_of(Decision(Act.WAIT, why, "you"), StandingOrders(), no_sandbox="", jobs=1).for_clients
    assert told
    assert "you" not in told


READY = effective_state_of(FREE, StandingOrders(), no_sandbox="", jobs=0)
PAUSED = effective_state_of(FREE, StandingOrders(paused=True), no_sandbox="", jobs=0)
ROOMY = Readings(memory_free_mb=4096, on_battery=False)


@pytest.mark.parametrize(
    ("state", "readings", "settings", "stands", "may"),
    [
        (READY, ROOMY, IdleSettings(), False, True),
        (READY, Readings(), IdleSettings(), False, True),  # a machine that tells nothing
        (READY, ROOMY, IdleSettings(standby=False), True, False),
        (PAUSED, ROOMY, IdleSettings(), True, False),
        (effective_state_of(BUSY, StandingOrders(), no_sandbox="", jobs=0), ROOMY, IdleSettings(), True, False),
        (READY, Readings(memory_free_mb=4096, on_battery=True), IdleSettings(on_battery=True), True, False),
        (READY, Readings(memory_free_mb=1023), IdleSettings(keep_memory_free_mb=512), False, False),
        (READY, Readings(memory_free_mb=1024), IdleSettings(keep_memory_free_mb=512), False, True),
        (READY, Readings(memory_free_mb=768), IdleSettings(keep_memory_free_mb=512), True, True),
        (READY, Readings(memory_free_mb=767), IdleSettings(keep_memory_free_mb=512), True, False),
    ],
)
def test_a_worker_stands_by_while_the_machine_has_nothing_better_to_do(state, readings, settings, stands, may):
    assert may_stand_by(state, readings, settings, stands=stands) is may


def test_clients_do_not_hear_what_is_on_the_owners_screen():
    told = {
        effective_state_of(Decision(Act.WAIT, why, ""), StandingOrders(), no_sandbox="", jobs=1).for_clients
        for why in (Why.IN_USE, Why.FULL_SCREEN)
    }
    assert told == {"its owner lends it at other times"}
