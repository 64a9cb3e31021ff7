"""Before the first round: which state all members start from, who holds it, and who fetches it from whom. Pure.

Members build the model from the same seed, so as a rule all hold the same state at once. Libraries of different
versions may still differ in the last bit, and a job that is resumed starts from a state that nobody holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TypeVar

from axonp2p.training.messages import AdoptState
from axonp2p.training.round_messages import Action, BuiltModel, SendStartState, Tell

T = TypeVar("T")


def odd_model(one: BuiltModel, others: BuiltModel) -> str:
    """The fault of one model, where the others are another one."""
    if one.size == others.size:
        return "its model's tensors have other names, shapes or types than the others'"
    said = [
        f"{parameters} parameters, {values} values and {exact} exact ones"
        for parameters, values, exact in (one.size, others.size)
    ]
    return f"its model has {said[0]}, the others' {said[1]}"


def majority(said: Mapping[int, T]) -> T:
    """The answer of most ranks; of equally many, that of the lowest rank among them."""
    votes = Counter(said.values())
    return said[min(said, key=lambda rank: (-votes[said[rank]], rank))]


class StateAgreement:
    """The way of all members to one state. `start_state` is what a resumed job goes on from."""

    def __init__(self, states: Mapping[int, bytes], start_state: bytes | None) -> None:
        self._states = dict(states)
        self._start_state = start_state
        self.goal = start_state or majority(states)
        self._goals = {self.goal}
        self._senders: dict[int, list[int]] = {}

    def lacking(self, members: Collection[int]) -> list[int]:
        """Those of `members` that do not hold the goal yet."""
        return [rank for rank in sorted(members) if self._states[rank] != self.goal]

    def senders_to(self, rank: int) -> list[int]:
        """The members of which `rank` was told that they hold the state; none when the client sends it."""
        return self._senders.get(rank, [])

    def adopted(self, rank: int, state: bytes) -> bool:
        """Note that the member took a state over; False when it was never asked to take that one."""
        if state not in self._goals:
            return False
        self._states[rank] = state
        return True

    def orders(self, members: Collection[int], asleep: Collection[int] = ()) -> list[Action]:
        """The messages to be sent now so that each of `members` comes to hold the goal. None is sent twice.

        A member that is `asleep` is not named as a sender while somebody else is awake.
        """
        holders = self._holders(members)
        if not holders and self._start_state is None:
            # All who held the goal are gone. The others still hold what they began with.
            self.goal = majority({rank: self._states[rank] for rank in members})
            self._goals.add(self.goal)
            self._senders.clear()
            holders = self._holders(members)
        if not holders:
            return self._send_to_one(min(members))
        senders = [rank for rank in holders if rank not in asleep] or holders
        said: list[Action] = []
        for rank in self.lacking(members):
            if set(self.senders_to(rank)) & set(senders):
                continue
            self._senders[rank] = senders
            said.append(Tell(rank, AdoptState(state=self.goal, senders=senders)))
        return said

    def _holders(self, members: Collection[int]) -> list[int]:
        return [rank for rank in sorted(members) if self._states[rank] == self.goal]

    def _send_to_one(self, rank: int) -> list[Action]:
        """The client uploads the state once; the others fetch it from the member that got it."""
        if rank in self._senders:
            return []
        self._senders[rank] = []
        return [Tell(rank, AdoptState(state=self.goal, senders=[])), SendStartState(rank)]
