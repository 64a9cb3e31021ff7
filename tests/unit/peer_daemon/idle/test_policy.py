"""Conversations with the idle policy: so the machine looks, so it decides."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from peer_daemon.idle.decision import Act, Decision, Readings, Why
from peer_daemon.idle.hours import Hours
from peer_daemon.idle.idle_settings import IdleSettings, UseRules
from peer_daemon.idle.policy import IdlePolicy

MONDAY_NOON = datetime(2026, 11, 23, 12, 0)
CALM = Readings(memory_free_mb=8000, memory_pressure=0.0, disk_free_mb=50_000, input_idle_s=1000.0)


class Machine:
    """A machine that somebody looks at every half second."""

    def __init__(self, working: bool = True, **settings: Any) -> None:
        self.policy = IdlePolicy(IdleSettings(**settings))
        self.working = working
        self.now = 5000.0
        self.local = MONDAY_NOON

    def look(self, seconds: float = 0.5, **seen: Any) -> Decision:
        """What is decided at the end of so many seconds in which each look saw this."""
        for _ in range(round(seconds / 0.5)):
            self.now += 0.5
            self.local += timedelta(seconds=0.5)
            decision = self.policy.decide(replace(CALM, **seen), self.now, self.local, working=self.working)
        return decision

    def says(self, seconds: float = 0.5, **seen: Any) -> str:
        decision = self.look(seconds, **seen)
        return f"{decision.act}: {decision.sentence}"

    def seconds_until(self, act: Act, **seen: Any) -> float:
        """How long this must be seen until `act`; at most an hour."""
        began = self.now
        while self.look(**seen).act is not act:
            assert self.now - began < 3600
        return self.now - began


COMPILING = {"others_cpu": 0.87, "busiest": ("firefox", "cc1plus")}


def test_a_free_machine_works_at_once() -> None:
    assert Machine().says() == "run: nothing else needs the machine"


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (COMPILING, "wait: other programs use 87 % CPU (limit 25 %): firefox, cc1plus"),
        ({"on_battery": True, "battery_percent": 62.0}, "wait: on battery (62 %)"),
        ({"on_battery": True}, "wait: on battery"),
        ({"programs": frozenset({"blender"})}, "wait: blender runs"),
        ({"programs": frozenset({"blender", "doom"})}, "wait: blender and doom run"),
        ({"full_screen": True}, "wait: a program keeps the screen for itself"),
        ({"temperature_c": 93.2}, "wait: too hot: 93 C (limit 90)"),
        ({"metered": True}, "wait: the network costs by the byte"),
        ({"memory_free_mb": 310}, "hand back: only 310 MiB of memory free (512 are kept for you)"),
        ({"memory_pressure": 35.0}, "hand back: programs wait for memory 35 % of the time (limit 20 %)"),
        ({"disk_free_mb": 200}, "hand back: only 200 MiB of disk free (1024 are kept for you)"),
    ],
)
def test_what_stops_jobs_at_once(seen: dict[str, Any], said: str) -> None:
    machine = Machine()
    machine.look()
    assert machine.says(**seen) == said


def test_wishes_make_reasons_and_take_them_away() -> None:
    assert Machine(others_mbit=5).says(others_mbit=12.0) == (
        "wait: other programs use 12 Mbit/s of the network (limit 5)"
    )
    assert Machine(on_battery=True).look(on_battery=True).act is Act.RUN
    assert Machine(metered=True).look(metered=True).act is Act.RUN
    assert Machine(hottest_c=0).look(temperature_c=120.0).act is Act.RUN
    assert Machine().look(others_mbit=900.0).act is Act.RUN
    assert Machine(not_in_use=UseRules(others_cpu=1.0)).look(60, others_cpu=1.0).act is Act.RUN


def test_a_page_that_loads_stops_nothing_and_a_compiler_does() -> None:
    machine = Machine()
    assert machine.look(others_cpu=0.4).act is Act.RUN
    assert machine.look(others_cpu=0.1).act is Act.RUN
    assert machine.look(others_cpu=0.4).act is Act.RUN
    assert machine.says(others_cpu=0.4) == "wait: another program uses 40 % CPU (limit 25 %)"


def test_after_a_stop_jobs_wait_for_ten_seconds_of_quiet() -> None:
    machine = Machine()
    machine.look()
    machine.look(1, **COMPILING)
    machine.look(1)
    assert machine.says(4) == (
        "wait: quiet for 4 s, and jobs continue after 10; "
        "last reason: other programs use 87 % CPU (limit 25 %): firefox, cc1plus"
    )
    assert machine.says(6) == "run: nothing else needs the machine"


def test_just_below_the_limit_is_not_quiet() -> None:
    machine = Machine(hand_back_s=10_000)
    machine.look(5, **COMPILING)
    assert (
        machine.says(60, others_cpu=0.22) == "wait: another program used 22 % CPU just now (jobs continue below 20 %)"
    )
    machine.look(600, temperature_c=95.0)
    assert machine.says(60, temperature_c=87.0) == "wait: still hot: 87 C (jobs continue at 85)"
    assert machine.says(60, memory_free_mb=600) == (
        "wait: only 600 MiB of memory free (512 are kept for you, jobs continue at 768)"
    )
    assert machine.look(301).act is Act.RUN


def test_a_machine_that_is_wanted_again_and_again_is_left_alone_longer_and_longer() -> None:
    machine = Machine(working=False)
    waits = []
    for _ in range(8):
        machine.look(2, **COMPILING)
        waits.append(machine.seconds_until(Act.RUN))
        machine.look(20)
    for waited, quiet in zip(waits, [10, 20, 40, 80, 160, 300, 300, 300], strict=True):
        assert quiet <= waited <= quiet + 8  # some seconds until the average is quiet, too

    machine.look(2400)  # forty calm minutes
    machine.look(2, **COMPILING)
    assert machine.seconds_until(Act.RUN) < 30


def test_a_mail_program_that_wakes_up_now_and_then_starves_nobody() -> None:
    machine = Machine(working=False)
    machine.look(2, **COMPILING)
    for _ in range(10):
        machine.look(9.5)
        last = machine.look(others_cpu=0.35)
    assert last.act is Act.RUN


def test_jobs_that_waited_long_are_handed_back_until_they_are_gone() -> None:
    machine = Machine()
    assert machine.says(120, on_battery=True) == "wait: on battery"
    assert machine.says(on_battery=True) == "hand back: on battery; handed back after 2 minutes of waiting"
    assert machine.look(60).act is Act.HAND_BACK  # the mains are back, but the work is on its way
    machine.working = False
    assert machine.says(on_battery=True) == "wait: on battery"
    assert machine.look(11).act is Act.RUN


def test_waiting_without_work_is_not_counted() -> None:
    machine = Machine(working=False)
    machine.look(600, on_battery=True)
    machine.working = True
    assert machine.look(on_battery=True).act is Act.WAIT


def test_who_says_no_minutes_has_no_frozen_jobs() -> None:
    assert Machine(hand_back_s=0).look(on_battery=True).act is Act.HAND_BACK


def test_wanted_memory_is_given_back_even_while_another_reason_is_told() -> None:
    machine = Machine()
    machine.look(on_battery=True)
    assert machine.look(on_battery=True, memory_free_mb=100).why is Why.MEMORY


def test_without_work_low_memory_is_only_waited_for() -> None:
    assert Machine(working=False).look(memory_free_mb=100).act is Act.WAIT


def test_jobs_over_the_memory_lent_while_somebody_is_there() -> None:
    machine = Machine(in_use=UseRules(memory_mb=2048))
    assert machine.look(workers_memory_mb=3100).act is Act.RUN
    assert machine.says(workers_memory_mb=3100, input_idle_s=1.0) == (
        "hand back: jobs use 3100 MiB of memory, and 2048 are lent while somebody uses this machine"
    )


def test_a_full_disk_keeps_jobs_from_beginning_and_stops_none_that_has_its_room() -> None:
    assert Machine().look(disk_free_mb=512).act is Act.RUN
    assert Machine(working=False).says(disk_free_mb=512) == "wait: only 512 MiB of disk free (1024 are kept for you)"


def test_hours() -> None:
    machine = Machine(hours=Hours.parse(["Mon-Fri 18:00-08:00"]), hand_back_s=10_000)
    assert machine.says() == "wait: outside your hours (Mon-Fri 18:00-08:00), next at 18:00"
    machine.local = MONDAY_NOON.replace(hour=18)
    assert machine.look().act is Act.RUN  # it was quiet all the time
    machine.local = MONDAY_NOON - timedelta(days=1)  # somebody set the clock
    assert machine.says() == "wait: outside your hours (Mon-Fri 18:00-08:00), next tomorrow at 18:00"


def test_the_owner_who_comes_back_gets_the_machine() -> None:
    machine = Machine(in_use=UseRules(run=False))
    assert machine.look(input_idle_s=500.0).act is Act.RUN
    assert machine.says(input_idle_s=0.2) == ("wait: somebody uses this machine, and it is lent only when nobody does")
    assert machine.look(input_idle_s=180.0).act is Act.RUN


def test_a_machine_that_does_not_tell_counts_as_used() -> None:
    machine = Machine(in_use=UseRules(run=False))
    assert machine.says(input_idle_s=None) == (
        "wait: somebody may use this machine (it does not tell), and it is lent only when nobody does"
    )
    assert Machine(not_in_use=UseRules(run=False)).says() == (
        "wait: nobody uses this machine, and it is lent only while somebody does"
    )


def test_fewer_cores_while_somebody_is_there() -> None:
    machine = Machine(in_use=UseRules(cores=1))
    assert machine.look(input_idle_s=1.0).cores == 1
    assert machine.look(input_idle_s=None).cores == 1
    assert machine.look(input_idle_s=181.0).cores == 0


def test_new_wishes_hold_at_once() -> None:
    machine = Machine()
    machine.look(60, **COMPILING)
    machine.policy.settings = IdleSettings(in_use=UseRules(others_cpu=1.0), not_in_use=UseRules(others_cpu=1.0))
    assert machine.look(**COMPILING).act is Act.RUN
