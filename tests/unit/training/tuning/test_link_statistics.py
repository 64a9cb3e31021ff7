"""What is measured of members, and when it changes what is chosen."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from axonp2p.training.options import ExchangeOptions
from axonp2p.training.plan import TrainPlan
from axonp2p.training.tuning.exchange_tuner import ExchangeChoice
from axonp2p.training.tuning.link_statistics import Line, LinkStatistics
from axonp2p.verification.claims import Mark
from axonp2p.verification.rates import TRIALS
from tests.unit.training.conversation import SECOND, round_done

MBIT = 125_000.0
PLAN = TrainPlan("job", "task.py", 4, 10, 40, batch=8, seed=1, rtt_s=0.08)
MODEL = (1_000_000, 1_000_000, 0)


def measured(upload: float = 20, download: float = 100) -> LinkStatistics:
    return LinkStatistics(PLAN, {rank: Line(upload * MBIT, download * MBIT) for rank in range(4)})


def choose(known: LinkStatistics) -> tuple[ExchangeChoice, bool]:
    return known.choose(MODEL, range(4), 0, [])


def test_what_owners_declare_holds_until_something_is_measured() -> None:
    known = measured()
    assert "20 Mbit/s" in choose(known)[0].why
    known.line(2, 5 * MBIT, 0)
    assert "5 Mbit/s" in choose(known)[0].why


def test_a_measurement_that_differs_little_changes_nothing() -> None:
    known = measured()
    known.line(2, 5 * MBIT, 0)
    first, changed = choose(known)
    assert changed
    known.line(2, 6 * MBIT, 0)
    again, changed = choose(known)
    assert not changed
    assert again == first


def test_a_choice_by_assumptions_is_not_kept_once_there_is_a_measurement() -> None:
    plan = TrainPlan("job", "task.py", 4, 10, 30, batch=8, seed=1, rtt_s=0.08)
    assumed, told = LinkStatistics(plan, {}), LinkStatistics(plan, {rank: Line(20 * MBIT) for rank in range(4)})
    reports = {rank: round_done(0, 0, SECOND, members=4, seconds=10 * 0.29) for rank in range(4)}
    for known in (assumed, told):
        choose(known)
        known.round(reports)
    by_assumption, by_measurement = choose(assumed)[0], choose(told)[0]
    assert by_assumption.settings.exchange_every > by_measurement.settings.exchange_every
    for rank in range(4):
        assumed.line(rank, 20 * MBIT, 0)
    assert choose(assumed)[0].same_terms(by_measurement), "though it is less than a quarter better"


def test_a_line_carries_at_least_what_it_carried_in_an_exchange() -> None:
    known = LinkStatistics(PLAN, {})
    assert "assumed" in choose(known)[0].why
    done = msgspec.structs.replace(
        round_done(0, 0, SECOND, members=4), sent_bytes=1_000_000, exchanges=1, exchange_seconds=0.59
    )
    for _ in range(TRIALS):
        known.round(dict.fromkeys(range(4), done))
        assert "assumed" in choose(known)[0].why, "members tried their own steps meanwhile"
    known.round(dict.fromkeys(range(4), done))
    assert "20 Mbit/s" in choose(known)[0].why, "two round trips and the handling of values are not the line's"
    for rank in range(4):
        known.line(rank, 5 * MBIT, 0)  # it was measured while TCP had only begun
    assert "20 Mbit/s" in choose(known)[0].why
    for _ in range(4):
        known.round(dict.fromkeys(range(4), msgspec.structs.replace(done, exchange_seconds=3.0)))
    assert "5 Mbit/s" in choose(known)[0].why, "it is slower now"


def test_an_exchange_during_steps_says_nothing_of_the_line() -> None:
    plan = replace(PLAN, options=ExchangeOptions(compression="2-bit", exchange_every=2))
    known = LinkStatistics(plan, {rank: Line(20 * MBIT) for rank in range(4)})
    slow = round_done(0, 0, SECOND, members=4, seconds=6.0)
    choose(known)
    known.round(dict.fromkeys(range(4), slow))
    assert choose(known)[0].settings.overlap
    done = msgspec.structs.replace(slow, sent_bytes=10**9, exchange_seconds=0.1)
    for _ in range(TRIALS + 1):
        known.round(dict.fromkeys(range(4), done))
    assert "20 Mbit/s" in choose(known)[0].why


def test_what_comes_in_as_fast_as_it_is_sent_says_nothing_of_the_line() -> None:
    known = measured()
    usual, _ = choose(known)
    known.line(1, 20 * MBIT, 15 * MBIT)  # of three that send 20 Mbit/s each to three
    assert choose(known)[0] == usual
    known.line(1, 20 * MBIT, 2 * MBIT)
    assert choose(known)[0].shares[1] < 0.5 * usual.shares[1]


def test_the_time_of_a_step_is_learnt_from_reports() -> None:
    known = measured()
    assert choose(known)[0].settings.patience >= 60, "nothing is known of the slowest yet"
    for seconds in (1.0, 1.1):  # 80 samples are 10 steps
        known.round({rank: round_done(0, 0, SECOND, members=4, seconds=seconds) for rank in range(4)})
    choice, _ = choose(known)
    assert (
        f"{choice.settings.exchange_every} local steps about {0.1 * choice.settings.exchange_every:.2g} s" in choice.why
    )
    assert choice.settings.patience < 60


def test_a_step_is_timed_without_the_marks_of_its_leg_and_they_by_themselves() -> None:
    plain, marked = measured(), measured()
    mark = Mark(leg=0, step=0, name=bytes(32), size=16, sketch=bytes(256), memory=[])
    for known, marks, more in ((plain, [], 0.0), (marked, [mark] * 4, 2.0)):
        choose(known)
        done = round_done(0, 0, SECOND, members=4, seconds=3.0 + more)
        report = msgspec.structs.replace(done, marks=marks, mark_seconds=more)
        known.round(dict.fromkeys(range(4), report))
    told = "local steps about "
    assert all(
        f"{one.settings.exchange_every} {told}{0.3 * one.settings.exchange_every:.2g} s" in one.why
        for one in (choose(plain)[0], choose(marked)[0])
    )
    assert choose(marked)[0].settings.exchange_every > choose(plain)[0].settings.exchange_every, "half a second a mark"


def test_outer_momentum_comes_with_the_number_of_the_round_so_that_a_resumed_job_has_it_too() -> None:
    plan = TrainPlan("job", "task.py", 4, 100, 40, batch=8, seed=1, options=ExchangeOptions(exchange_every=40))
    known = LinkStatistics(plan, {})
    told = [known.choose(MODEL, range(4), 0, [], round=round)[0].settings.outer_momentum for round in (0, 49, 50, 99)]
    assert told == [0.0, 0.0, 0.9, 0.9]


@pytest.mark.parametrize("thin", [False, True])
def test_a_member_that_missed_all_exchanges_three_times_has_to_go(thin: bool) -> None:
    known = measured()
    choose(known)
    whole = 0.75 * MODEL[1]
    for round in range(3):
        gone = known.round(
            {
                rank: round_done(round, 0, SECOND, members=4, left_out=[3], kept_back=int(whole) // (1 + thin))
                if rank == 3
                else round_done(round, 0, SECOND, members=4, left_out=[3])
                for rank in range(4)
            }
        )
    assert list(gone) == ([] if thin else [3])
