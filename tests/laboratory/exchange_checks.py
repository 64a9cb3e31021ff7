"""What must hold of a history of `exchange_world`, whatever went wrong in it. Each breach is one sentence."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from axonp2p.blobs.pieces import piece_count
from axonp2p.tensors.coding import BYTES_A_VALUE, EXACT, Coding
from axonp2p.tensors.dense import dense_bytes
from axonp2p.tensors.encoding import decode, encode
from axonp2p.tensors.sparse import kept_count, sparse_bytes
from axonp2p.training.exchange.terms import parts, slices
from axonp2p.training.messages import AdoptState, AskPieces
from axonp2p.training.round_messages import RoundAccepted, RoundBegunAnew, Trained
from axonp2p.training.rounds.phases import Phase
from axonp2p.training.trainer.outer_optimizer import State, outer_step, state_from_file, state_values
from axonp2p.training.trainer.trainer_orders import exchanges_of
from axonp2p.training.worker.member_actions import SayToCoordinator
from tests.laboratory.exchange_world import Round, World


def broken_promises(world: World) -> Iterator[str]:
    """What does not hold that always must."""
    yield from _rounds_in_order(world)
    yield from _all_stand_where_they_say(world)
    yield from _as_replayed(world)


def accepted_of(world: World) -> list[RoundAccepted]:
    return [action for _, action in world.desk.seen if isinstance(action, RoundAccepted)]


def redone_of(world: World) -> list[tuple[float, RoundBegunAnew]]:
    return [(time, action) for time, action in world.desk.seen if isinstance(action, RoundBegunAnew)]


def attempts_of(world: World) -> dict[int, Round]:
    """The attempt of each accepted round that counted."""
    return {
        action.round: world.rounds[action.round, next(iter(action.reports.values())).attempt]
        for action in accepted_of(world)
    }


def _rounds_in_order(world: World) -> Iterator[str]:
    rounds = [action.round for action in accepted_of(world)]
    first, setting = world.setting.first_round, world.setting
    if rounds != list(range(first, first + len(rounds))):
        yield f"rounds were accepted in the order {rounds}"
    if (world.desk.rounds.phase is Phase.TRAINED) != (len(rounds) == setting.rounds - first):
        yield f"{len(rounds)} rounds were accepted, and the job is {world.desk.rounds.phase.value}"
    for action in accepted_of(world):
        said = {report.state for report in action.reports.values()}
        seen = attempts_of(world)[action.round]
        if said != {action.state} or any(seen.states[rank].name != action.state for rank in action.reports):
            yield f"members of round {action.round} do not stand where the others do"
        if len({tuple(report.slices) for report in action.reports.values()}) != 1:
            yield f"members of round {action.round} applied different results"


def _all_stand_where_they_say(world: World) -> Iterator[str]:
    """Every member that is said to hold the last state gives it, to the bit."""
    for _, action in world.desk.seen:
        if isinstance(action, Trained):
            for rank in action.members:
                if world.peers[rank].alive and not world.peers[rank].frozen:
                    state = _given_by(world, rank, action.state)
                    if state.name != action.state:
                        yield f"member {rank} gives another state than it said to have"


def _given_by(world: World, rank: int, state: bytes) -> State:
    member = world.peers[rank].member
    assert member
    numbers = list(range(piece_count(state_values(world.setting.layout) * BYTES_A_VALUE)))
    list(member.ordered(AdoptState(state=state, senders=[]), world.agenda.now))  # the last round counts
    asked = member.ordered(AskPieces(state=state, numbers=numbers), world.agenda.now)
    given = b"".join(action.payload for action in asked if isinstance(action, SayToCoordinator))
    return state_from_file(given, world.setting.layout)


def _as_replayed(world: World) -> Iterator[str]:
    """Each accepted state is what its round gives when it is done by itself, from what members moved."""
    state = world.begins_with
    leftovers: dict[int, Tensor] = {}
    legs: dict[int, int] = {}
    unsure: set[int] = set()
    for number, seen in sorted(attempts_of(world).items()):
        start = next(iter(seen.orders[rank] for rank in seen.orders if seen.orders[rank].shards))
        accepted = next(action for action in accepted_of(world) if action.round == number)
        if start.state != state.name:
            yield f"round {number} did not begin where the one before led to"
            return
        for rank in start.members:
            for exchange in range(exchanges_of(start)):
                leg = world.taken.get((rank, start.round, start.attempt, exchange))
                if rank not in unsure and leg and not torch.equal(leg.difference, world.moved(rank, legs.get(rank, 0))):
                    yield f"member {rank} trained round {number} with an optimiser that had not been put back"
                legs[rank] = legs.get(rank, 0) + 1
        missing = set(start.members) - accepted.reports.keys()
        if any(part.left_out for part, _ in seen.results.values()):
            state = next(iter(seen.states.values()))
            leftovers |= seen.leftovers
            unsure |= missing
            continue
        known = leftovers | {rank: seen.before[rank] for rank in unsure & seen.before.keys() if len(seen.before[rank])}
        state, after = _replayed(world, seen, state, known)
        leftovers |= after
        unsure |= missing  # whether they came to the end of what counted, and go on from there, only they know
        if state.name != accepted.state:
            yield f"round {number} did not lead to what its members' differences lead to"
            return
        for rank, left in seen.leftovers.items():
            if not torch.equal(left, after[rank]):
                yield f"member {rank} holds back something else after round {number} than it should"
                return


def _replayed(world: World, seen: Round, state: State, before: dict[int, Tensor]) -> tuple[State, dict[int, Tensor]]:
    """A round's end state and what each member holds back then; the exchange in plain, as the docs have it."""
    parameters, values = world.setting.layout.parameters, world.setting.layout.values
    orders = {rank: order for rank, order in seen.orders.items() if order.shards}
    start = next(iter(orders.values()))
    left = {rank: before.get(rank, torch.zeros(parameters)) for rank in orders}
    for exchange in range(exchanges_of(start)):
        legs = {rank: world.taken[rank, start.round, start.attempt, exchange] for rank in orders}
        sending = {rank: legs[rank].difference.clone() for rank in orders}
        for rank in orders:
            sending[rank][:parameters] += left[rank]
        mean = torch.zeros(values)
        kept = {rank: torch.zeros(values) for rank in orders}
        for owner, (begin, end) in slices(values, start.members, start.shares).items():
            for offset, count in parts(begin, end, start.settings.part, parameters):
                here = slice(begin + offset, begin + offset + count)
                exact = here.start >= parameters
                added = torch.zeros(count, dtype=torch.float64)
                for rank in sorted(orders):
                    values_out = sending[rank][here]
                    if rank != owner:
                        _, values_out = encode(values_out.clone(), EXACT if exact else orders[rank].gather)
                        kept[rank][here] = sending[rank][here] - values_out
                    added += values_out.double() * legs[rank].samples
                total = sum(legs[rank].samples for rank in orders)
                whole = (added / total).float()
                coding = EXACT if exact or len(seen.orders) == 1 else orders[owner].result
                _, mean[here] = encode(whole, coding)
                kept[owner][here] = (whole - mean[here]) * (total / legs[owner].samples)
        state = outer_step(state, mean, start.settings.outer_learning_rate, start.settings.outer_momentum)
        left = {rank: kept[rank][:parameters] for rank in orders}
    return state, left


def lost_on_the_way(world: World) -> str:
    """The sum of all that counted members moved must be what was applied, and what they still hold back.

    Empty when it is, or when it cannot be told: members weighed differently, or one was lost with what it held back.
    """
    attempts = attempts_of(world)
    took_part = {rank for seen in attempts.values() for rank, order in seen.orders.items() if order.shards}
    samples = {
        world.taken[rank, number, order.attempt, exchange].samples
        for number, seen in attempts.items()
        for rank, order in seen.orders.items()
        if order.shards
        for exchange in range(exchanges_of(order))
        if (rank, number, order.attempt, exchange) in world.taken
    }
    alone = any(len([1 for order in seen.orders.values() if order.shards]) == 1 for seen in attempts.values())
    if len(samples) != 1 or alone or not attempts:
        return ""
    parameters = world.setting.layout.parameters
    reported = {action.round: set(action.reports) for action in accepted_of(world)}
    moved, applied = torch.zeros(parameters, dtype=torch.float64), torch.zeros(parameters, dtype=torch.float64)
    for number, seen in attempts.items():
        for rank, order in seen.orders.items():
            if not order.shards:
                continue
            if rank not in reported[number]:
                return ""  # it may have been lost, or left behind, before it knew what became of its values
            for exchange in range(exchanges_of(order)):
                moved += world.taken[rank, number, order.attempt, exchange].difference[:parameters]
        for part, payload in seen.results.values():
            order = next(iter(seen.orders.values()))
            begin, end = slices(world.setting.layout.values, order.members, order.shares)[part.slice]
            count = dict(parts(begin, end, order.settings.part, parameters))[part.offset]
            at = begin + part.offset
            if at < parameters:
                applied[at : at + count] += decode(payload, count) * (part.samples / next(iter(samples)))
    held = sum((left_at_the_end(world, rank) for rank in took_part), torch.zeros(parameters))
    wrong = (moved - applied - held).abs()
    return "" if float(wrong.max()) < 1e-2 else f"{float(wrong.max()):.3g} of what members moved is not accounted for"


def left_at_the_end(world: World, rank: int) -> Tensor:
    """What a member holds back after the last accepted round: by its own account if it is there, else as last seen."""
    parameters = world.setting.layout.parameters
    attempts = attempts_of(world)
    member = world.peers[rank].member
    trained = world.desk.rounds.phase is Phase.TRAINED  # and so it has been asked for the last state
    if trained and world.peers[rank].alive and member is not None and rank in max(attempts.items())[1].orders:
        left = member._states.leftover._left
    else:
        seen = [one.leftovers[rank] for _, one in sorted(attempts.items()) if rank in one.leftovers]
        left = seen[-1] if seen else torch.zeros(0)
    return left if len(left) else torch.zeros(parameters)


_HEAD_BYTES = 8


def encoded_bytes(count: int, coding: Coding) -> int:
    """How long the payload of `count` values is; with a density below 1, about. It is never longer than with 1."""
    all_of_them = _HEAD_BYTES + dense_bytes(count, coding.bits)
    if coding.density == 1:
        return all_of_them
    return min(all_of_them, _HEAD_BYTES + sparse_bytes(count, kept_count(count, coding.density), coding.bits))
