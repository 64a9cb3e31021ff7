from __future__ import annotations

import hashlib

import msgspec
import pytest
import torch

from axonp2p.blobs.pieces import book_of
from axonp2p.errors import MalformedMessage, TaskMistake
from axonp2p.tensors.coding import Coding
from axonp2p.training.messages import (
    AdoptState,
    AskPieces,
    FilePart,
    Piece,
    Progress,
    SlicePart,
    StateAdopted,
    TaskFailed,
)
from axonp2p.training.state_transfer.file_parts import cut
from axonp2p.training.trainer.outer_optimizer import first_state, outer_step
from axonp2p.training.trainer.trainer_orders import Abandon, LegDone, NextLeg, RollBack, TaskWentWrong, TrainRound
from axonp2p.training.worker.member_actions import SayToCoordinator
from axonp2p.verification.claims import RoundDone
from tests.unit.training.member_swarm import BATCH, LAYOUT, MemberSwarm, NextStep, TinyTrainer, start_round

CODINGS = [
    *(Coding(bits=bits) for bits in (32, 16, 8, 4, 2, 1)),
    *(Coding(bits=bits, density=0.05) for bits in (32, 8, 2, 1)),
]
TWO_BITS = {"gather": Coding(bits=2, density=0.1), "result": Coding(bits=2)}


def rounds(swarm, members, count, state=None, first=0, **settings):
    """Whole rounds, one after the other; gives the states that they led to."""
    states = [state or swarm.first]
    for round in range(first, first + count):
        swarm.start(round, states[-1], members, **settings)
        states.append(swarm.finish(members))
    return states[1:]


def whole_leg(trainer, work):
    outcomes = trainer.give(work, 0.0)
    while isinstance(outcomes[-1][1], NextStep):
        outcomes = trainer.step(outcomes[-1][1], 0.0)
    return outcomes[-1][1]


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("coding", CODINGS, ids=str)
def test_all_members_end_each_round_with_the_same_state_to_the_bit(coding, overlap):
    swarm = MemberSwarm(3, step_seconds={0: 1.0, 1: 0.7, 2: 1.9}, latency={(0, 2): 1.5})
    states = rounds(swarm, [0, 1, 2], 3, gather=coding, result=coding, overlap=overlap)
    assert len({swarm.first, *states}) == 4
    assert not swarm.refused
    assert {done.exchanges for done in swarm.done.values()} == {3}


def test_without_overlap_every_leg_goes_on_from_the_outer_step():
    swarm = MemberSwarm(2)
    (state,) = rounds(swarm, [0, 1], 1)
    by_hand = [TinyTrainer(rank, 1.0) for rank in (0, 1)]
    expected = first_state(swarm.trainers[0].given[0].weights, LAYOUT)
    works = [TrainRound(start_round(0, swarm.first, [0, 1]), expected.weights)] * 2
    for _ in range(3):
        legs = [whole_leg(trainer, work) for trainer, work in zip(by_hand, works, strict=True)]
        added = sum(leg.difference.to(torch.float64) * leg.samples for leg in legs)
        mean = (added / sum(leg.samples for leg in legs)).to(torch.float32)
        expected = outer_step(expected, mean, 0.7, 0.9)
        works = [NextLeg(expected.weights)] * 2
    assert state == expected.name


def test_with_overlap_a_leg_begins_with_its_own_difference_while_the_exchange_goes_on():
    swarm = MemberSwarm(1)
    swarm.start(0, swarm.first, [0], overlap=True, steps=8, outer_learning_rate=0.5, outer_momentum=0.0)
    legs = []
    hear = swarm.members[0].trained

    def trained(done, now):
        if isinstance(done, LegDone):
            legs.append(done.difference.clone())
        return hear(done, now)

    swarm.members[0].trained = trained
    swarm.finish([0])
    begun = [work.weights for work in swarm.trainers[0].given if isinstance(work, TrainRound | NextLeg)]
    states = [first_state(begun[0], LAYOUT)]
    for leg in legs:
        states.append(outer_step(states[-1], leg, 0.5, 0.0))
    expected = [begun[0]] + [state.weights - leg for state, leg in zip(states[:3], legs[:3], strict=True)]
    assert all(torch.equal(one, other) for one, other in zip(begun, expected, strict=True))


def test_with_overlap_steps_go_on_while_an_exchange_is_under_way():
    swarm = MemberSwarm(2, latency={(0, 1): 1.0, (1, 0): 1.0})
    rounds(swarm, [0, 1], 1, overlap=False)
    waiting = swarm.done[0].exchange_seconds
    rounds(swarm, [0, 1], 1, swarm.done[0].state, 1, overlap=True)
    assert waiting == pytest.approx(6.0)
    # Only the last exchange is waited for: the legs take as long as the others.
    assert swarm.done[0].exchange_seconds == pytest.approx(2.0)


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("lost_at", [0.5, 2.005, 2.5, 4.015, 6.015, 6.5])
def test_a_round_that_is_redone_comes_out_as_if_it_had_never_been_begun(lost_at, overlap):
    disturbed, calm = (MemberSwarm(3) for _ in range(2))
    settings = {"overlap": overlap, **TWO_BITS}
    ends = []
    for swarm in (disturbed, calm):
        (state,) = rounds(swarm, [0, 1, 2], 1, **settings)
        if swarm is disturbed:
            swarm.start(1, state, [0, 1, 2], **settings)
            swarm.run(swarm.now + lost_at)
            swarm.gone.add(2)
            swarm.reports.clear()
        swarm.start(1, state, [0, 1], attempt=1, **settings)
        redone = swarm.finish([0, 1])
        ends.append((redone, *rounds(swarm, [0, 1], 2, redone, 2, **settings)))
    assert ends[0] == ends[1]
    assert not disturbed.refused


def test_a_candidate_that_is_not_accepted_is_forgotten_with_its_leftover():
    ends = []
    for redone in (True, False):
        swarm = MemberSwarm(2)
        (state,) = rounds(swarm, [0, 1], 1, **TWO_BITS)
        if redone:
            swarm.start(1, state, [0, 1], **TWO_BITS)
            assert swarm.finish([0, 1]) != state
        swarm.start(1, state, [0, 1], attempt=1, **TWO_BITS)
        ends.append(swarm.finish([0, 1]))
    assert ends[0] == ends[1]


def test_another_order_ends_a_round_and_the_optimizer_goes_back():
    swarm = MemberSwarm(2)
    swarm.start(0, swarm.first, [0, 1], ranks=[0])
    swarm.run()
    assert not swarm.take(RoundDone)
    swarm.start(0, swarm.first, [0], attempt=1)
    assert [type(work) for work in swarm.trainers[0].given[-3:]] == [Abandon, RollBack, TrainRound]
    swarm.finish([0])


def test_who_is_late_is_left_out_and_says_it_in_the_next_exchange():
    swarm = MemberSwarm(3, step_seconds={2: 20.0})
    settings = {"shares": [1, 1, 0], "patience": 5.0, "steps": 2}
    swarm.start(0, swarm.first, [0, 1, 2], **settings)
    state = swarm.finish([0, 1, 2])
    assert [swarm.done[rank].left_out for rank in range(3)] == [[2], [2], []]
    assert [swarm.done[rank].kept_back for rank in range(3)] == [0, 0, LAYOUT.values]
    with_leftover = swarm.members[2]._round.leftover.take(torch.zeros(LAYOUT.values))
    assert with_leftover[: LAYOUT.parameters].abs().sum() > 0
    rounds(swarm, [0, 1, 2], 1, state, 1, **settings | {"patience": 100.0})


def test_who_is_overtaken_ends_its_leg_and_does_not_fall_behind_further():
    swarm = MemberSwarm(3, step_seconds={2: 3.0})
    settings = {"shares": [1, 1, 0], "patience": 2.0, "steps": 32, "exchange_every": 4, **TWO_BITS}
    rounds(swarm, [0, 1, 2], 1, **settings)
    assert all(2 in swarm.done[rank].left_out for rank in (0, 1))
    # Its first leg is cut short in its fourth step; from then on it is at most one exchange late.
    assert 8 * BATCH < swarm.done[2].samples < 24 * BATCH
    assert not swarm.refused


def test_one_owner_among_many_cannot_cut_the_work_of_others_short():
    swarm = MemberSwarm(4)
    swarm.start(0, swarm.first, [0, 1, 2, 3], shares=[1, 1, 1, 0])
    part = SlicePart(round=0, attempt=0, exchange=2, phase="result", slice=1, offset=0, samples=1)
    swarm._carry_out(3, swarm.members[3].heard(1, part, b"", 0.0))
    swarm.finish([0, 1, 2, 3])
    assert swarm.done[3].samples == 6 * BATCH


def test_a_time_budget_ends_legs_and_weights_go_by_samples():
    swarm = MemberSwarm(2, step_seconds={0: 1.0, 1: 0.25})
    swarm.start(0, swarm.first, [0, 1], steps=24, exchange_every=8, seconds=6.0)
    swarm.finish([0, 1])
    assert swarm.done[0].samples == 3 * 2 * BATCH
    assert swarm.done[1].samples == 3 * 8 * BATCH
    assert swarm.done[0].exchange_seconds < 1


def test_a_report_tells_what_was_done():
    swarm = MemberSwarm(2)
    rounds(swarm, [0, 1], 1)
    done = swarm.done[1]
    assert (done.samples, done.flops, done.loss, done.exchanges) == (6 * BATCH, 600, 1.0, 3)
    assert done.train_seconds == 6.0
    assert done.test_samples == 10
    assert set(done.metrics) == {"loss"}
    assert done.sent_bytes > 3 * LAYOUT.values * 4
    assert done.received_bytes == swarm.done[0].sent_bytes


def test_progress_is_passed_on():
    swarm = MemberSwarm(1)
    swarm.start(0, swarm.first, [0])
    swarm.run()
    assert swarm.take(Progress)[0].step == 6


# --- joining ---


@pytest.mark.parametrize("latency", [0.01, 4.0, 16.0])
def test_a_listener_fetches_a_state_while_rounds_go_on_and_then_takes_part(latency):
    fetching = {(rank, 3): latency for rank in range(3)}
    swarm = MemberSwarm(4, latency=fetching)
    (state,) = rounds(swarm, [0, 1, 2], 1, **TWO_BITS)
    for round in range(1, 8):
        swarm.start(round, state, [0, 1, 2], listeners=[3], **TWO_BITS)
        swarm.run(swarm.now + 8.0)
        done = swarm.take(RoundDone)
        assert sorted(done) == [0, 1, 2]
        state = done[0].state
    swarm.run()
    assert swarm.take(StateAdopted)[3].state == state
    assert not swarm.refused
    swarm.take(Progress)
    rounds(swarm, [0, 1, 2, 3], 2, state, 8, **TWO_BITS)


def test_a_listener_says_after_every_round_where_it_is():
    swarm = MemberSwarm(3)
    state = swarm.first
    for round in range(3):
        swarm.start(round, state, [0, 1], listeners=[2], overlap=True, **TWO_BITS)
        state = swarm.finish([0, 1])
        assert swarm.adopted[2].state == state


def test_a_listener_goes_back_with_a_round_that_is_redone():
    swarm = MemberSwarm(3)
    (state,) = rounds(swarm, [0, 1], 1)
    swarm.start(1, state, [0, 1], listeners=[2], **TWO_BITS)
    swarm.finish([0, 1])
    swarm.start(1, state, [0, 1], attempt=1, listeners=[2])
    redone = swarm.finish([0, 1])
    assert swarm.adopted[2].state == redone
    rounds(swarm, [0, 1, 2], 1, redone, 2)


def test_a_listener_of_a_round_that_it_hears_of_last_finds_the_results():
    swarm = MemberSwarm(3)
    swarm.start(0, swarm.first, [0, 1], listeners=[2], ranks=[0, 1])
    swarm.run()
    swarm.start(0, swarm.first, [0, 1], listeners=[2], ranks=[2])
    state = swarm.finish([0, 1])
    assert swarm.adopted[2].state == state


def test_a_member_that_stood_still_comes_back_as_a_listener_with_its_leftover():
    swarm = MemberSwarm(3)
    states = rounds(swarm, [0, 1, 2], 2, **TWO_BITS)
    held = swarm.members[2]._states.leftover
    states += rounds(swarm, [0, 1], 2, states[-1], 2, **TWO_BITS)
    swarm.start(4, states[-1], [0, 1], listeners=[2], **TWO_BITS)
    state = swarm.finish([0, 1])
    assert swarm.adopted[2].state == state
    rounds(swarm, [0, 1, 2], 1, state, 5, **TWO_BITS)
    assert held is swarm.members[2]._states.leftover


def test_a_member_takes_over_a_state_that_others_hold():
    swarm = MemberSwarm(3)
    states = rounds(swarm, [0, 1], 2)
    swarm.order(2, AdoptState(state=states[-1], senders=[0, 1]))
    swarm.run()
    assert swarm.take(StateAdopted)[2].state == states[-1]
    rounds(swarm, [0, 1, 2], 1, states[-1], 2)


def test_a_state_that_is_here_already_is_not_fetched():
    swarm = MemberSwarm(2)
    swarm.start(0, swarm.first, [0, 1])
    candidate = swarm.finish([0, 1])
    before = len(swarm.told)
    swarm.order(1, AdoptState(state=candidate, senders=[0]))
    assert swarm.take(StateAdopted)[1].state == candidate
    assert len(swarm.told) == before


def test_a_lying_sender_is_named_and_the_others_are_asked():
    swarm = MemberSwarm(4)
    states = rounds(swarm, [0, 1, 2], 1)
    liar = swarm.members[1].heard

    def heard(sender, message, payload, now):
        for answer in liar(sender, message, payload, now):
            wrong = isinstance(message, AskPieces) and isinstance(answer.message, Piece)
            yield type(answer)(answer.rank, answer.message, b"x" * len(answer.payload)) if wrong else answer

    swarm.members[1].heard = heard
    swarm.order(3, AdoptState(state=states[-1], senders=[1, 0, 2]))
    swarm.run()
    assert swarm.take(StateAdopted)[3].state == states[-1]
    assert [(rank, sender) for rank, sender, _ in swarm.refused] == [(3, 1)]


def test_who_does_not_hold_a_state_says_so():
    swarm = MemberSwarm(2)
    (told,) = swarm.members[0].heard(1, AskPieces(state=bytes(32), numbers=[]), b"", 0.0)
    assert isinstance(told.message, Piece)
    assert told.payload == b""


# --- files ---


def test_the_state_is_sent_and_a_job_goes_on_from_it():
    swarm, later = MemberSwarm(1), MemberSwarm(1)
    (state,) = rounds(swarm, [0], 1)
    swarm.order(0, AskPieces(state=state, numbers=[0]))
    (kept,) = (bytes(payload) for _, message, payload in swarm.reports if isinstance(message, Piece))
    assert book_of(kept).name == state
    member = later.members[0]
    later.order(0, AdoptState(state=state, senders=[]))
    adopted = [
        action.message
        for part, payload in cut(kept, hashlib.sha256(kept).digest())
        for action in member.hear_file(part, payload, 0.0)
    ]
    assert adopted == [StateAdopted(state=state)]
    rounds(later, [0], 1, state, 1)


@pytest.mark.parametrize(
    ("part", "payload", "reason"),
    [
        (FilePart(offset=5, total=9, sha256=bytes(32)), b"1", "nobody asked for"),
        (FilePart(offset=0, total=9, sha256=bytes(32)), b"1", "does not fit"),
    ],
)
def test_files_that_do_not_fit_end_the_worker(part, payload, reason):
    with pytest.raises(MalformedMessage, match=reason):
        list(MemberSwarm(1).members[0].hear_file(part, payload, 0.0))


def test_a_state_file_with_another_name_ends_the_worker():
    member = MemberSwarm(1).members[0]
    list(member.ordered(AdoptState(state=bytes(32), senders=[]), 0.0))
    data = bytes((LAYOUT.values + LAYOUT.parameters) * 4)
    ((part, payload),) = cut(data, hashlib.sha256(data).digest())
    with pytest.raises(MalformedMessage, match="name was made of"):
        list(member.hear_file(part, payload, 0.0))


# --- mistakes, and what nobody may say ---


def test_a_mistake_of_the_task_is_reported_and_the_member_stays():
    swarm = MemberSwarm(1)
    swarm.start(0, swarm.first, [0])
    swarm.run(0.5)
    mistake = TaskWentWrong(TaskMistake("loss()", cause="ValueError"))
    swarm._carry_out(0, swarm.members[0].trained(mistake, swarm.now))
    assert swarm.take(TaskFailed)[0].doing == "loss()"
    swarm.start(0, swarm.first, [0], attempt=1)
    swarm.finish([0])


def test_what_members_may_not_say_is_refused_and_changes_nothing():
    calm, swarm = MemberSwarm(2), MemberSwarm(2)
    part = SlicePart(round=0, attempt=0, exchange=0, phase="gather", slice=0, offset=0, samples=2 * BATCH, left_out=[])
    expected = rounds(calm, [0, 1], 1)
    swarm._carry_out(0, swarm.members[0].heard(1, part, b"rubbish", 0.0))
    assert rounds(swarm, [0, 1], 1) == expected
    assert [(rank, sender) for rank, sender, _ in swarm.refused] == [(0, 1)]


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        (start_round(0, bytes(32), [0]), "asked to continue from state 0000"),
        (start_round(0, bytes(32), [1]), "does not name the one"),
        (start_round(0, bytes(32), [0, 0]), "twice"),
        (start_round(0, bytes(32), [0], shares=[0]), "shares"),
        (start_round(0, bytes(32), [0, 1], listeners=[1]), "twice"),
    ],
)
def test_orders_that_make_no_sense_end_the_worker(order, reason):
    with pytest.raises(MalformedMessage, match=reason):
        list(MemberSwarm(1).members[0].ordered(order, 0.0))


def test_a_member_without_shards_ends_the_worker():
    swarm = MemberSwarm(1)
    order = msgspec.structs.replace(start_round(0, swarm.first, [0]), shards=[])
    with pytest.raises(MalformedMessage, match="without shards"):
        list(swarm.members[0].ordered(order, 0.0))


# --- another coordinator ---


def said_by(actions):
    return [action.message for action in actions if isinstance(action, SayToCoordinator)]


def test_who_is_asked_again_leaves_its_round_and_says_what_it_holds():
    swarm = MemberSwarm(2)
    member = swarm.members[0]
    first = swarm.first
    (led_to,) = rounds(swarm, [0, 1], 1)
    (again,) = said_by(member.prepare_again())
    assert (again.state, again.candidate) == (first, led_to)
    # In the middle of the round after, the one before counts, and its own is not over.
    swarm.order(0, start_round(1, led_to, [0, 1]))
    actions = list(member.prepare_again())
    assert isinstance(actions[0], Abandon)
    (again,) = said_by(actions)
    assert (again.state, again.candidate) == (led_to, None)


def test_a_round_that_is_done_again_for_another_coordinator_leads_to_the_same():
    calm, shaken = MemberSwarm(2), MemberSwarm(2)
    expected = rounds(calm, [0, 1], 3)
    led_to = rounds(shaken, [0, 1], 1)
    for member in shaken.members.values():
        list(member.prepare_again())
    led_to += rounds(shaken, [0, 1], 2, led_to[-1], 1)
    assert led_to == expected
