"""A late joiner that hears what the others exchange while the state that they began with is on its way to it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from axonp2p.errors import MalformedMessage, PeerMisbehaved
from axonp2p.tensors.coding import Coding
from axonp2p.tensors.layout import Layout
from axonp2p.training.exchange.arrivals import ArrivalTimes
from axonp2p.training.exchange.slice_exchange import SliceExchange
from axonp2p.training.exchange.terms import terms_of
from axonp2p.training.messages import SlicePart, StartRound
from axonp2p.training.trainer.outer_optimizer import State, first_state, outer_step
from axonp2p.training.worker.followed_rounds import FollowedRounds
from tests.laboratory.exchange_settings import start_of

LAYOUT = Layout(parameters=5000, float_buffers=10, integer_buffers=2, lengths=(5000, 10, 2))
MEMBERS, JOINER, BATCH = [0, 1, 4], 2, 8
SPARSE = Coding(bits=4, density=0.05)
FIRST = first_state(torch.randn(LAYOUT.values, generator=torch.Generator().manual_seed(1)), LAYOUT)

Results = list[tuple[int, SlicePart, bytes]]


def order(state: State, round: int, attempt: int = 0, **changes: object) -> StartRound:
    plain: dict[str, object] = {
        "round": round,
        "attempt": attempt,
        "state": state.name,
        "members": MEMBERS,
        "listeners": [JOINER],
        "shards": [],
        "steps": 25,
        "exchange_every": 10,
        "seconds": 0.0,
        "overlap": True,
        "shares": [1, 2, 1],
        "part": 1024,
        "gather": SPARSE,
        "result": SPARSE,
        "patience": 10.0,
        "outer_learning_rate": 0.7,
        "outer_momentum": 0.9,
    }
    return start_of(**(plain | changes))


class Round:
    """One attempt at a round of the members: what they come to, and what they tell the joiner."""

    def __init__(self, state: State, round: int, attempt: int = 0, **changes: object) -> None:
        self.start = order(state, round, attempt, **changes)
        self.results: Results = []
        self.after = state
        for exchange in range(3):
            mean = self._exchange(exchange, torch.Generator().manual_seed(100 * round + 10 * attempt + exchange))
            self.after = outer_step(self.after, mean, 0.7, 0.9)

    def _exchange(self, exchange: int, chance: torch.Generator) -> torch.Tensor:
        members: dict[int, SliceExchange] = {}
        for rank in MEMBERS:
            terms = terms_of(self.start, rank, exchange, LAYOUT, BATCH)
            members[rank] = SliceExchange(terms, torch.randn(LAYOUT.values, generator=chance), 7, ArrivalTimes(), 0.0)
        said = [(rank, out) for rank in MEMBERS for out in members[rank].outgoing()]
        for sender, (to, part, payload) in said:
            if to == JOINER:
                self.results.append((sender, part, payload))
            else:
                said += [(to, answer) for answer in members[to].receive(sender, part, payload, 0.0)]
        assert all(member.complete for member in members.values())
        return members[0].mean()


def rounds(*numbers: int, state: State = FIRST) -> list[Round]:
    found: list[Round] = []
    for number in numbers:
        found.append(Round(found[-1].after if found else state, number))
    return found


def joiner(most_bytes: int = 10**7) -> FollowedRounds:
    return FollowedRounds(JOINER, LAYOUT, BATCH, most_bytes)


def tell(followed: FollowedRounds, results: Sequence[tuple[int, SlicePart, bytes]]) -> None:
    for sender, part, payload in results:
        followed.hear(sender, part, memoryview(payload), 0.0)


def where(followed: FollowedRounds) -> bytes | None:
    return followed.newest.name if followed.newest else None


def test_what_was_heard_meanwhile_is_applied_once_the_state_is_there():
    followed, played = joiner(), rounds(3, 4)
    for one in played:
        followed.begin(one.start)
        tell(followed, one.results)
    assert (followed.base, where(followed)) == (FIRST.name, None)
    followed.arrived(FIRST)
    assert (followed.base, where(followed)) == (None, played[-1].after.name)


def test_then_each_round_is_followed_as_it_is_heard():
    followed, (third, fourth) = joiner(), rounds(3, 4)
    followed.expect(FIRST.name)
    assert followed.base == FIRST.name
    followed.arrived(FIRST)
    assert where(followed) == FIRST.name
    followed.begin(third.start)
    tell(followed, third.results[:-1])
    assert where(followed) == FIRST.name
    tell(followed, third.results[-1:])
    assert where(followed) == third.after.name
    followed.begin(fourth.start)
    assert where(followed) == third.after.name
    tell(followed, fourth.results)
    assert where(followed) == fourth.after.name
    assert followed.named(FIRST.name) is None
    assert followed.named(third.after.name) is not None


@pytest.mark.parametrize("after", [0, 1, 5, 20, 10**6])
def test_the_state_may_come_at_any_moment(after):
    followed, played, told = joiner(), rounds(3, 4), 0
    for one in played:
        followed.begin(one.start)
        for result in one.results:
            tell(followed, [result])
            told += 1
            if told == after:
                followed.arrived(FIRST)
    followed.arrived(FIRST)
    assert where(followed) == played[-1].after.name


def test_results_of_exchanges_that_overlap_come_in_any_order():
    followed, (third,) = joiner(), rounds(3)
    followed.begin(third.start)
    followed.arrived(FIRST)
    tell(followed, sorted(third.results, key=lambda result: -result[1].exchange))
    assert where(followed) == third.after.name


def test_parts_of_the_round_before_may_come_after_the_next_one_began():
    followed, (third, fourth) = joiner(), rounds(3, 4)
    followed.begin(third.start)
    followed.arrived(FIRST)
    tell(followed, third.results[:4])
    followed.begin(fourth.start)
    tell(followed, fourth.results)
    assert where(followed) == FIRST.name
    tell(followed, third.results[4:])
    assert where(followed) == fourth.after.name


@pytest.mark.parametrize("heard", [0, 7, 10**6])
@pytest.mark.parametrize("base_is_there", [False, True])
def test_of_a_round_that_is_redone_nothing_is_left(heard, base_is_there):
    followed, first_try = joiner(), Round(FIRST, 3)
    again = Round(FIRST, 3, attempt=1)
    followed.begin(first_try.start)
    if base_is_there:
        followed.arrived(FIRST)
    tell(followed, first_try.results[:heard])
    followed.begin(again.start)
    if base_is_there:
        assert where(followed) == FIRST.name
    tell(followed, first_try.results[heard:])
    tell(followed, again.results)
    followed.arrived(FIRST)
    assert where(followed) == again.after.name
    assert followed.named(FIRST.name) is FIRST


def test_above_its_bound_it_begins_anew_with_the_next_round():
    (third, fourth) = rounds(3, 4)
    bound = 2 * LAYOUT.values * 4  # two exchanges on their way in, less what they hold
    followed = joiner(bound)
    followed.begin(third.start)
    tell(followed, [result for result in third.results if result[1].offset == 0])
    assert followed.base is None
    followed.arrived(FIRST)
    tell(followed, third.results)
    assert (followed.base, where(followed)) == (None, None)
    followed.begin(fourth.start)
    assert followed.base == third.after.name
    tell(followed, fourth.results)
    followed.arrived(third.after)
    assert where(followed) == fourth.after.name


def test_what_is_complete_takes_only_what_came():
    played = rounds(*range(3, 9))
    came = sum(len(payload) for one in played for _, _, payload in one.results)
    followed = joiner(came + 2 * LAYOUT.values * 4)
    for one in played:
        followed.begin(one.start)
        tell(followed, one.results)
    assert 4 * came < len(played) * 3 * LAYOUT.values * 4  # of 18 means
    followed.arrived(FIRST)
    assert where(followed) == played[-1].after.name


def test_a_round_that_it_cannot_come_to_makes_it_begin_anew_from_there():
    third, fourth, fifth = rounds(3, 4, 5)
    missed = joiner()
    missed.begin(third.start)
    missed.begin(fifth.start)
    assert missed.base == fourth.after.name

    elsewhere = joiner()
    elsewhere.begin(third.start)
    elsewhere.arrived(FIRST)
    tell(elsewhere, third.results)
    other = Round(fourth.after, 4)
    elsewhere.begin(other.start)
    assert (elsewhere.base, elsewhere.newest) == (fourth.after.name, None)
    tell(elsewhere, other.results)
    elsewhere.arrived(fourth.after)
    assert where(elsewhere) == other.after.name


def test_an_order_to_fetch_another_state_is_followed_from_the_round_that_begins_with_it():
    followed, (third, fourth) = joiner(), rounds(3, 4)
    for one in (third, fourth):
        followed.begin(one.start)
    tell(followed, fourth.results)
    followed.expect(FIRST.name)
    assert followed.base == FIRST.name
    followed.expect(third.after.name)
    assert followed.base == third.after.name
    followed.arrived(FIRST)
    assert followed.newest is None
    followed.arrived(third.after)
    assert where(followed) == fourth.after.name
    followed.expect(fourth.after.name)
    assert followed.base is None


def test_what_does_not_fit_is_a_breach_and_changes_nothing():
    followed, (third,) = joiner(), rounds(3)
    followed.begin(third.start)
    sender, part, payload = third.results[0]
    for wrong in (
        (sender, part, payload[:-1]),
        (next(rank for rank in MEMBERS if rank != sender), part, payload),
        (
            sender,
            SlicePart(**{**{name: getattr(part, name) for name in part.__struct_fields__}, "exchange": 3}),
            payload,
        ),
    ):
        with pytest.raises(PeerMisbehaved, match="rank"):
            tell(followed, [wrong])
    tell(followed, third.results)
    with pytest.raises(PeerMisbehaved, match="complete"):
        tell(followed, third.results[:1])
    followed.arrived(FIRST)
    assert where(followed) == third.after.name


def test_a_round_that_does_not_name_the_joiner_is_no_order_to_it():
    with pytest.raises(MalformedMessage):
        joiner().begin(order(FIRST, 3, listeners=[]))
