"""How often members exchange and in how many bits, by their links and steps."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from axonp2p.jobs.aggregation import MEAN, Rule
from axonp2p.tensors.coding import EXACT, Coding
from axonp2p.training.messages import LEAST_PART, MOST_PART
from axonp2p.training.options import ExchangeOptions
from axonp2p.training.tuning.cost_model import DENSITIES, FEW_VALUES, OVERLAPPED
from axonp2p.training.tuning.costs import ExchangeFacts, bits_a_value, exchange_s, upload_bytes, vector_bytes
from axonp2p.training.tuning.exchange_tuner import ExchangeChoice, choose
from axonp2p.training.tuning.loss_table import BITS, FEW_BITS, FEW_EXCHANGES, FIRST_EXCHANGES, LATE, loss_of
from axonp2p.verification.rates import cut_for
from tests.laboratory.exchange_checks import encoded_bytes
from tests.laboratory.exchange_settings import COMPRESSION

MBIT = 125_000.0
SPARING = ExchangeOptions(bytes="sparing")


def facts(
    *uploads: float, values: int = 1_000_000, steps: int = 40, step_s: float = 0.25, **more: Any
) -> ExchangeFacts:
    """Members with these uploads in Mbit/s, and five times as much the other way."""
    ranks = tuple(range(len(uploads)))
    known = ExchangeFacts(
        values=values,
        parameters=values,
        exact=0,
        members=ranks,
        steps=steps,
        step_s=dict.fromkeys(ranks, step_s),
        upload={rank: upload * MBIT for rank, upload in enumerate(uploads)},
        download={rank: 5 * upload * MBIT for rank, upload in enumerate(uploads)},
        rtt_s=0.08,
    )
    return dataclasses.replace(known, **more)


def seconds(choice: ExchangeChoice, known: ExchangeFacts) -> float:
    whole = sum(choice.shares.values())
    share = {rank: share / whole for rank, share in choice.shares.items()}
    return exchange_s(known, choice.gather, next(iter(choice.result.values())), share)


def filled(choice: ExchangeChoice, known: ExchangeFacts) -> float:
    """Which share of the time of its local steps the slowest upload is busy."""
    whole = sum(choice.shares.values())
    mean = vector_bytes(known, next(iter(choice.result.values())))
    busy = max(
        upload_bytes(known, vector_bytes(known, choice.gather[rank]), mean, choice.shares[rank] / whole)
        / known.up(rank)
        for rank in known.members
    )
    return busy / (choice.settings.exchange_every * known.slowest_step_s)


# --- links between homes ---


@pytest.mark.parametrize(
    ("values", "step_ms", "upload", "every", "bits", "overlap"),
    [
        (100_000, 20, 2, 120, 4, False),
        (100_000, 20, 20, 60, 16, False),
        (100_000, 20, 100, 40, 16, False),
        (100_000, 300, 2, 2, 4, True),
        (100_000, 300, 20, 1, 8, True),
        (100_000, 300, 100, 1, 32, True),
        (1_000_000, 20, 2, 120, 1, False),
        (1_000_000, 20, 20, 120, 4, False),
        (1_000_000, 20, 100, 60, 4, False),
        (1_000_000, 300, 2, 24, 2, False),
        (1_000_000, 300, 20, 2, 2, True),
        (1_000_000, 300, 100, 2, 16, True),
        (1_000_000, 1000, 2, 15, 4, False),
        (1_000_000, 1000, 20, 1, 8, True),
        (1_000_000, 1000, 100, 1, 32, True),
        (10_000_000, 300, 2, 120, 1, False),
        (10_000_000, 300, 20, 30, 2, False),
        (10_000_000, 300, 100, 15, 4, False),
        (10_000_000, 1000, 2, 40, 1, False),
        (10_000_000, 1000, 20, 15, 4, False),
        (10_000_000, 1000, 100, 2, 8, True),
    ],
)
def test_a_line_is_used_for_what_loses_least_in_good_time(
    values: int, step_ms: int, upload: int, every: int, bits: int, overlap: bool
) -> None:
    known = facts(*[upload] * 4, values=values, steps=120, step_s=step_ms / 1000)
    choice = choose(ExchangeOptions(), known)
    assert (choice.settings.exchange_every, choice.bits, choice.settings.overlap) == (every, bits, overlap)


@pytest.mark.parametrize("values", [1_000_000, 10_000_000])
@pytest.mark.parametrize("upload", [20, 100, 1000, 8000])
@pytest.mark.parametrize("step_s", [0.02, 0.3])
def test_a_sparing_job_sends_a_hundredth_of_the_bytes_over_any_line(values: int, upload: int, step_s: float) -> None:
    choice = choose(SPARING, facts(*[upload] * 4, values=values, step_s=step_s, rtt_s=0.001))
    assert choice.dense_bytes_a_round > 100 * choice.bytes_a_round


def test_a_sparing_job_loses_more_and_sends_less_than_one_that_uses_its_line() -> None:
    known = facts(20, 20, 20, 20, step_s=0.3, steps=120)
    line, sparing = choose(ExchangeOptions(), known), choose(SPARING, known)
    assert sparing.bytes_a_round < line.bytes_a_round / 3
    assert line.settings.exchange_every < sparing.settings.exchange_every
    assert filled(line, known) > 3 * filled(sparing, known)


def test_legs_are_so_long_that_members_can_keep_their_ends_for_checks() -> None:
    memory = 1200 * 2**20
    known = facts(20, 20, 20, 20, step_s=0.3, steps=30, marks_bytes=memory)
    every = choose(ExchangeOptions(), known).settings.exchange_every
    assert not cut_for(known.values, 30, every, memory).why_not
    assert every > choose(ExchangeOptions(), facts(20, 20, 20, 20, step_s=0.3, steps=30)).settings.exchange_every
    asked = choose(ExchangeOptions(exchange_every=1), known)
    assert asked.settings.exchange_every == 1, "what is wished is taken"
    assert choose(ExchangeOptions(), dataclasses.replace(known, marks_bytes=1)).settings.exchange_every < 30, (
        "where none can be kept, checks are off whatever the legs"
    )


def test_legs_are_longer_where_their_ends_take_long_to_be_committed_to() -> None:
    slow = dict.fromkeys(range(4), 0.1)
    known = facts(100, 100, 100, 100, step_s=0.3, steps=120)
    quick, kept = (choose(ExchangeOptions(), dataclasses.replace(known, mark_s=cost)) for cost in ({}, slow))
    assert kept.settings.exchange_every > quick.settings.exchange_every


def test_a_slow_member_sends_its_large_values_only_and_owns_nothing() -> None:
    quick = choose(ExchangeOptions(), facts(20, 20, 20, 20, step_s=0.25))
    known = facts(20, 20, 20, 2, step_s=0.25)
    choice = choose(ExchangeOptions(), known)
    assert (choice.settings.exchange_every, choice.bits) == (quick.settings.exchange_every, quick.bits), (
        "the others lose nothing by it"
    )
    assert [choice.gather[rank].density for rank in range(3)] == [1, 1, 1]
    assert choice.gather[3].density in DENSITIES
    assert choice.shares[3] < 0.02 * sum(choice.shares.values())
    assert seconds(choice, known) <= OVERLAPPED * choice.settings.exchange_every * 0.25


def test_where_all_are_slow_all_exchange_fewer_bytes_instead() -> None:
    choice, quick = (
        choose(ExchangeOptions(), facts(2, 2, 2, 2, steps=200)),
        choose(ExchangeOptions(), facts(20, 20, 20, 20, steps=200)),
    )
    assert {coding.density for coding in choice.gather.values()} == {1.0}
    assert choice.bytes_a_round < quick.bytes_a_round


def test_when_nothing_fits_it_is_what_waits_least_and_says_so() -> None:
    known = facts(1, 1, 1, 1, values=50_000_000, steps=10, step_s=0.01)
    choice = choose(ExchangeOptions(), known)
    assert choice.bits == 1
    assert "a round takes" in choice.why
    assert "longer by it" in choice.why


def test_without_a_measurement_links_are_assumed_and_that_is_said() -> None:
    known = facts(20, 20, upload={}, download={}, step_s=0.25)
    assert "assumed" in choose(ExchangeOptions(), known).why
    assert "assumed" not in choose(ExchangeOptions(), facts(20, 20)).why


# --- rules that bear liars ---


def test_who_is_judged_value_by_value_sends_every_value_however_slow_it_is() -> None:
    known = facts(20, 20, 20, 2, step_s=0.05)
    assert choose(ExchangeOptions(aggregation="median"), known).gather[3].density == 1
    assert choose(ExchangeOptions(aggregation="centred-clipping"), known).gather[3].density < 1


@pytest.mark.parametrize(("members", "clipping", "krum"), [(1, 0, 0), (3, 0, 0), (4, 1, 0), (5, 1, 1), (8, 2, 2)])
def test_a_quarter_may_lie_where_nobody_says_how_many(members: int, clipping: int, krum: int) -> None:
    known = facts(*[20] * members)
    assert choose(ExchangeOptions(aggregation="centred-clipping"), known).settings.rule == Rule(
        "centred-clipping", clipping
    )
    assert choose(ExchangeOptions(aggregation="multi-krum"), known).settings.rule == Rule("multi-krum", krum)
    assert choose(ExchangeOptions(), known).settings.rule == MEAN


def test_another_number_of_liars_is_told() -> None:
    eight, seven = (choose(ExchangeOptions(aggregation="median"), facts(*[20] * members)) for members in (8, 7))
    assert not eight.same_terms(seven)
    asked = ExchangeOptions(aggregation="median", hostile=1)
    one, other = (choose(asked, facts(*[20] * members)) for members in (8, 7))
    assert one.same_terms(other)


# --- fast links ---


@pytest.mark.parametrize(("upload", "least"), [(1000.0, 4), (8000.0, 16)])
def test_on_a_fast_network_often_in_many_bits(upload: float, least: int) -> None:
    known = facts(*[upload] * 4, values=10_000_000, step_s=0.5, rtt_s=0.0005)
    choice = choose(ExchangeOptions(), known)
    assert choice.settings.exchange_every <= 3
    assert choice.bits >= least


def test_a_model_of_a_few_packets_travels_whole() -> None:
    assert choose(ExchangeOptions(), facts(20, 20, 20, 20, values=1000)).bits == 32


def test_an_exchange_that_takes_next_to_nothing_is_not_worth_a_delay() -> None:
    assert not choose(ExchangeOptions(), facts(8000, 8000, values=10_000, rtt_s=0.0001)).settings.overlap


# --- wishes ---


def test_what_is_wished_is_taken_whatever_it_costs() -> None:
    options = ExchangeOptions(
        compression="8-bit", exchange_every=3, overlap=False, outer_learning_rate=0.5, outer_momentum=0.8
    )
    choice = choose(options, facts(20, 20, 20, 20))
    assert (choice.bits, choice.settings.exchange_every, choice.settings.overlap) == (8, 3, False)
    assert (choice.settings.outer_learning_rate, choice.settings.outer_momentum) == (0.5, 0.8)


def test_with_bits_wished_time_and_loss_say_how_often() -> None:
    known = facts(20, 20, 20, 20, steps=100, step_s=1.0)
    choice = choose(ExchangeOptions(compression="none", overlap=False), known)
    assert (choice.bits, choice.settings.overlap) == (32, False)
    assert seconds(choice, known) <= 0.3 * choice.settings.exchange_every
    assert choice.settings.exchange_every < 60


def test_a_sparing_job_with_bits_wished_exchanges_as_rarely_as_that_takes() -> None:
    choice = choose(ExchangeOptions(compression="8-bit", bytes="sparing"), facts(1000, 1000, 1000, 1000))
    assert choice.bits == 8
    assert choice.dense_bytes_a_round > 100 * choice.bytes_a_round


def test_of_sparse_values_the_mean_is_as_dense_as_all_of_them_together() -> None:
    choice = choose(ExchangeOptions(compression="2-bit", density=1 / 64), facts(20, 20, 20, 20))
    assert choice.result[0] == Coding(2, 1 / 16)
    assert choice.settings.outer_momentum == 0, "error feedback takes its place"


def test_a_budget_of_seconds_makes_the_legs_shorter() -> None:
    known = facts(20, 20, 20, 20, steps=200, step_s=1.0)
    assert (
        choose(ExchangeOptions(seconds=10), known).settings.exchange_every
        > choose(ExchangeOptions(), known).settings.exchange_every
    )


@pytest.mark.parametrize(
    ("every", "density", "rounds", "momentum"),
    [
        (4, 1.0, 1000, 0.0),  # legs are short
        (100, 1.0, 0, 0.0),  # the first exchanges
        (100, 1.0, 9, 0.0),
        (100, 1.0, 10, 0.9),  # five exchanges a round
        (100, 0.1, 10, 0.0),  # error feedback takes its place
    ],
)
def test_outer_momentum_only_where_legs_are_long_and_dense_and_exchanges_many(
    every: int, density: float, rounds: int, momentum: float
) -> None:
    known = facts(20, 20, steps=500, rounds=rounds)
    choice = choose(ExchangeOptions(compression="8-bit", exchange_every=every, density=density), known)
    assert choice.settings.outer_momentum == momentum
    assert FIRST_EXCHANGES == 50


# --- parts ---


@pytest.mark.parametrize(
    ("upload", "values", "parts"),
    [
        (20, 1_000_000, 16),  # a sixteenth of a slice takes 25 ms
        (100, 1_000_000, 8),  # a hundredth of a second each
        (1000, 1_000_000, 4),  # less could not be added up while more is on its way
        (20, 40_000, 3),  # 16 KiB each
    ],
)
def test_parts_are_as_many_as_keep_a_line_busy_and_no_more(upload: float, values: int, parts: int) -> None:
    choice = choose(ExchangeOptions(exchange_every=10, compression="none"), facts(*[upload] * 4, values=values))
    assert math.ceil(values / 4 / choice.settings.part) == parts


# --- who is alone, or cut off ---


@pytest.mark.parametrize("bits", [None, 2, 32])
def test_who_is_alone_but_for_one_that_comes_spares_its_link_for_that_one(bits: Any) -> None:
    chosen = choose(ExchangeOptions(compression=COMPRESSION[bits]), facts(10, listeners=1))
    assert bits is None or chosen.bits == bits
    assert bits == 32 or chosen.bits < 32
    assert chosen.settings.part < MOST_PART
    assert (chosen.settings.outer_learning_rate, chosen.settings.outer_momentum) == (1.0, 0.0)


def test_who_is_alone_exchanges_nothing() -> None:
    choice = choose(ExchangeOptions(), facts(20))
    assert (choice.settings.exchange_every, choice.gather, choice.bytes_a_round) == (40, {0: EXACT}, 0)
    assert (choice.settings.outer_learning_rate, choice.settings.outer_momentum) == (1.0, 0.0)


def test_whom_a_link_is_cut_off_owns_nothing() -> None:
    choice = choose(ExchangeOptions(), facts(20, 20, 20), cut=[frozenset((0, 2))])
    assert [bool(choice.shares[rank]) for rank in range(3)] == [False, True, False]
    with pytest.raises(ValueError, match="cut off"):
        choose(ExchangeOptions(), facts(20, 20), cut=[frozenset((0, 1))])


# --- from one round to the next ---


@pytest.mark.parametrize("change", [0.9, 1.1])
def test_what_jitters_changes_nothing(change: float) -> None:
    before = choose(ExchangeOptions(), facts(20, 20, 20, 3))
    after = choose(ExchangeOptions(), facts(20 * change, 20, 20 / change, 3 * change), before=before)
    assert after.same_terms(before)


def test_what_changes_much_is_chosen_anew() -> None:
    before = choose(ExchangeOptions(), facts(20, 20, 20, 20, steps=200))
    after = choose(ExchangeOptions(), facts(2, 2, 2, 2, steps=200), before=before)
    assert not after.same_terms(before)
    assert choose(ExchangeOptions(), facts(20, 20, 20, 20, steps=200), before=after).same_terms(before)


# --- whatever the facts are ---

speeds = st.floats(0.05, 20_000)


@settings(deadline=None)
@example(uploads=[1.0, 0.25], values=3359, steps=2, step_s=3.0, bits=32, overlap=True)
@given(
    uploads=st.lists(speeds, min_size=1, max_size=8),
    values=st.integers(10, 10**9),
    steps=st.integers(1, 2000),
    step_s=st.floats(1e-4, 100),
    bits=st.none() | st.sampled_from(BITS),
    overlap=st.booleans(),
)
def test_there_is_always_a_choice_that_can_be_ordered(
    uploads: list[float], values: int, steps: int, step_s: float, bits: Any, overlap: bool
) -> None:
    known = facts(*uploads, values=values, steps=steps, step_s=step_s)
    choice = choose(ExchangeOptions(compression=COMPRESSION[bits], overlap=overlap), known)
    assert 1 <= choice.settings.exchange_every <= steps
    assert LEAST_PART <= choice.settings.part <= MOST_PART
    assert choice.gather.keys() == choice.result.keys() == choice.shares.keys() == set(known.members)
    assert sum(choice.shares.values()) > 0
    assert bits in (None, choice.bits) or len(uploads) == 1
    assert choice.settings.patience > 0
    assert choice.why
    assert choose(ExchangeOptions(compression=COMPRESSION[bits], overlap=overlap), known, before=choice).same_terms(
        choice
    )


@settings(deadline=None)
@given(
    upload=speeds,
    values=st.integers(10_000, 10**8),
    steps=st.integers(1, 500),
    step_s=st.floats(0.02, 10),
    members=st.integers(2, 8),
    sparing=st.booleans(),
)
def test_no_choice_fills_a_line_more_than_it_may_or_sends_more_than_it_should(
    upload: float, values: int, steps: int, step_s: float, members: int, sparing: bool
) -> None:
    known = facts(*[upload] * members, values=values, steps=steps, step_s=step_s)
    choice = choose(SPARING if sparing else ExchangeOptions(), known)
    if choice.settings.overlap:
        assert seconds(choice, known) <= OVERLAPPED * choice.settings.exchange_every * step_s
        assert filled(choice, known) <= OVERLAPPED
    if sparing and values > FEW_VALUES and steps >= 4:
        assert choice.dense_bytes_a_round >= 100 * choice.bytes_a_round


# --- what it reckons with ---


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("density", [1.0, 0.25, 0.1, 1 / 64])
def test_the_bytes_reckoned_with_are_those_of_the_codings(bits: Any, density: float) -> None:
    coding = Coding(bits, density)
    assert bits_a_value(coding) * 2**20 / 8 == pytest.approx(encoded_bytes(2**20, coding), rel=0.03)


def test_more_exchanges_more_bits_and_results_in_time_never_lose_more() -> None:
    for every in range(1, 2000):
        row = [loss_of(every, bits) for bits in BITS]
        assert row == sorted(row)
        assert loss_of(every, 2) <= loss_of(every + 1, 2)
        assert loss_of(every, 2) < loss_of(every, 2, late=True) <= loss_of(every + 1, 2, late=True)
    for every, missing in FEW_EXCHANGES.items():
        assert loss_of(every, 1) == pytest.approx(missing + FEW_BITS[1])
        assert loss_of(every, 32, late=True) == pytest.approx(missing + LATE[every])
