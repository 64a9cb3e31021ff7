"""Whatever a machine goes through: no work against a hard reason, no flapping, no starving, true sentences."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from peer_daemon.idle.decision import Act, Decision, Readings, Why
from peer_daemon.idle.hours import Hours
from peer_daemon.idle.idle_settings import IdleSettings, UseRules
from peer_daemon.idle.policy import FLAP_S, LONGEST_QUIET_S, IdlePolicy

START = datetime(2026, 11, 23, 12, 0)
CALM = Readings(memory_free_mb=8000, memory_pressure=0.0, disk_free_mb=50_000, input_idle_s=10.0, temperature_c=50.0)
WISHES = IdleSettings(
    hours=Hours.parse(["06:00-22:00"]), others_mbit=10, in_use=UseRules(others_cpu=0.3, cores=1, memory_mb=2000)
)

readings = st.builds(
    Readings,
    others_cpu=st.one_of(st.just(0.0), st.floats(0, 1)),
    busiest=st.sampled_from([(), ("firefox",), ("cc1plus", "ld")]),
    memory_free_mb=st.sampled_from([None, 100, 511, 512, 700, 8000]),
    memory_pressure=st.sampled_from([None, 0.0, 15.0, 30.0]),
    workers_memory_mb=st.sampled_from([0, 1000, 2500]),
    disk_free_mb=st.sampled_from([None, 200, 900, 50_000]),
    on_battery=st.sampled_from([None, False, False, True]),
    battery_percent=st.sampled_from([None, 62.0]),
    temperature_c=st.sampled_from([None, 50.0, 88.0, 93.0]),
    metered=st.sampled_from([None, False, False, True]),
    others_mbit=st.sampled_from([None, 0.0, 9.0, 20.0]),
    input_idle_s=st.sampled_from([None, 0.0, 179.0, 181.0]),
    full_screen=st.sampled_from([None, False, False, True]),
    programs=st.sampled_from([frozenset[str](), frozenset({"blender"})]),
)
stretches = st.tuples(
    st.one_of(st.just(CALM), readings),
    st.sampled_from([0.5, 10.0]),  # between two looks
    st.integers(1, 60),  # looks
    st.booleans(),  # whether a worker lives
    st.sampled_from([0, 0, 0, 3600, -3600, 86_400 * 400]),  # somebody sets the clock
)
histories = st.lists(stretches, min_size=1, max_size=12)

History = list[tuple[Readings, float, int, bool, int]]
Seen = list[tuple[float, Readings, datetime, Decision]]


def live(policy: IdlePolicy, history: History) -> Seen:
    """Every look of `history`, with what was decided."""
    now, local, seen = 100.0, START, []
    for reading, step, looks, working, jump in history:
        local += timedelta(seconds=jump)
        for _ in range(looks):
            now += step
            local += timedelta(seconds=step)
            seen.append((now, reading, local, policy.decide(reading, now, local, working=working)))
    return seen


def hard_reason(reading: Readings, local: datetime) -> bool:
    memory = reading.memory_free_mb is not None and reading.memory_free_mb < 512
    pressure = reading.memory_pressure is not None and reading.memory_pressure > 20
    hot = reading.temperature_c is not None and reading.temperature_c > 90
    power = bool(reading.on_battery or reading.metered)
    return (
        memory or pressure or hot or power or bool(reading.programs or reading.full_screen) or not 6 <= local.hour < 22
    )


@given(histories)
def test_nothing_runs_against_a_hard_reason(history: History) -> None:
    for _, reading, local, decision in live(IdlePolicy(WISHES), history):
        assert decision.act is not Act.RUN or not hard_reason(reading, local)


@given(histories)
def test_nothing_runs_through_two_looks_over_the_limit(history: History) -> None:
    seen = live(IdlePolicy(WISHES), history)
    for (_, before, _, _), (_, reading, _, decision) in pairwise(seen):
        if before.others_cpu > 0.3 and reading.others_cpu > 0.3:
            assert decision.act is not Act.RUN


@given(histories)
def test_jobs_do_not_go_on_more_than_eight_times_in_ten_minutes(
    history: History,
) -> None:
    # Hours and input are slow by themselves in the real world; here they would be switched at will.
    always = replace(WISHES, hours=Hours())
    seen = live(IdlePolicy(always), [(replace(r, input_idle_s=10.0), *rest) for r, *rest in history])
    went_on = [
        now
        for (_, _, _, before), (now, _, _, after) in pairwise(seen)
        if before.act is not Act.RUN and after.act is Act.RUN
    ]
    for moment in went_on:
        assert sum(moment <= other < moment + FLAP_S for other in went_on) <= 8


@given(histories, st.sampled_from([0.5, 10.0]))
def test_a_machine_that_falls_quiet_works_again_within_six_minutes(history: History, step: float) -> None:
    policy = IdlePolicy(replace(WISHES, hours=Hours()))
    live(policy, history)
    *_, (_, _, _, last) = live_on(policy, history, step, LONGEST_QUIET_S + 60)
    assert (last.act, last.sentence) == (Act.RUN, "nothing else needs the machine")


def live_on(policy: IdlePolicy, history: History, step: float, seconds: float) -> Seen:
    """Calm, after `history`; a worker that was handed back is gone."""
    now = 100.0 + sum(before * looks for _, before, looks, _, _ in history)
    seen = []
    for look in range(int(seconds / step)):
        now += step
        seen.append((now, CALM, START, policy.decide(CALM, now, START, working=look % 2 == 1)))
    return seen


@given(histories)
def test_sentences_name_the_figures_of_the_look(history: History) -> None:
    for _, reading, _, decision in live(IdlePolicy(WISHES), history):
        sentence = decision.sentence
        assert sentence
        assert (decision.act is Act.RUN) == (decision.why is Why.FREE)
        if decision.act is not Act.WAIT or sentence.startswith("quiet for"):
            continue  # work that is on its way back keeps its reason
        if found := re.match(r"another program uses (\d+) % CPU", sentence):
            assert int(found[1]) == round(100 * reading.others_cpu)
            assert all(name in sentence for name in reading.busiest)
        elif found := re.match(r"only (\d+) MiB of (memory|disk) free", sentence):
            assert int(found[1]) == (reading.memory_free_mb if found[2] == "memory" else reading.disk_free_mb)
        elif found := re.match(r"(?:too|still) hot: (\d+) C", sentence):
            assert int(found[1]) == reading.temperature_c
        elif decision.why is Why.BATTERY:
            assert reading.on_battery
            assert ("62 %" in sentence) == (reading.battery_percent is not None)
