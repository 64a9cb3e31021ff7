"""What a member sends instead of what it should: parts nobody can read, means that differ, pieces that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import torch

from axonp2p.tensors.coding import EXACT
from axonp2p.tensors.encoding import encode as encode_values
from axonp2p.training.exchange.terms import parts, slices
from axonp2p.training.messages import BetweenMembers, Piece, SlicePart
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame
from tests.laboratory.exchange_world import World

if TYPE_CHECKING:
    from tests.laboratory.exchange_faults import Misfortune

Forged = tuple[BetweenMembers, bytes] | None


def read(frame: bytes) -> tuple[BetweenMembers, memoryview]:
    """What is in a frame between members."""
    halves = split_frame(frame)
    message: BetweenMembers = decode(halves.header, BetweenMembers, HEADER_LIMIT)
    return message, halves.payload


class Forgery:
    """From now on one member's messages of a kind are others: those of one exchange, or all pieces of one state.

    `whoever`: it is the member that is the first to send such a message.
    """

    def __init__(
        self,
        world: World,
        misfortune: Misfortune,
        kind: type[BetweenMembers],
        forge: Callable[[Forgery, int, BetweenMembers, bytes], Forged],
        *,
        whoever: bool = False,
    ) -> None:
        self.world, self.misfortune = world, misfortune
        self.chance = misfortune.chance
        self.way = self.chance.randrange(1000)
        self.receivers: set[int] | None = None
        self._kind, self._forge = kind, forge
        self._about: object = None
        self._whoever = whoever
        misfortune.committed_at = None
        world.forgers.append(self._sent)

    def _sent(self, sender: int, to: int, frame: bytes) -> bytes:
        if sender != self.misfortune.victim and not self._whoever:
            return frame
        message, payload = read(frame)
        if not isinstance(message, self._kind):
            return frame
        about = (
            (message.round, message.attempt, message.exchange, message.phase)
            if isinstance(message, SlicePart)
            else message.state
        )
        if self._about not in (None, about):
            return frame
        forged = self._forge(self, to, message, bytes(payload))
        if forged is None:
            return frame
        self._about = about
        misfortune = self.misfortune
        misfortune.victim, self._whoever = sender, False
        if misfortune.committed_at is None:
            misfortune.committed_at = self.world.agenda.now
        misfortune.deceived.add(to)
        return pack_frame(*forged)


def corrupted(forgery: Forgery, to: int, message: BetweenMembers, payload: bytes) -> Forged:
    """A part that cannot be decoded, or whose header cannot be true."""
    assert isinstance(message, SlicePart)
    _choose(forgery, to, one=forgery.way % 2 == 0)
    if to not in (forgery.receivers or ()):
        return None
    match forgery.way // 2 % 5:
        case 0:
            return message, payload[:-1]
        case 1:
            return message, payload + b"\0"
        case 2:
            return message, b""
        case 3:
            return msgspec.structs.replace(message, samples=2**50), payload
        case _:
            return msgspec.structs.replace(message, offset=message.offset + 1), payload


def lied(forgery: Forgery, to: int, message: BetweenMembers, payload: bytes) -> Forged:
    """A mean that can be read, and is another one than the owner applies itself."""
    assert isinstance(message, SlicePart)
    world = forgery.world
    order = world.rounds[message.round, message.attempt].orders[forgery.misfortune.victim]
    if message.phase != "result" or to in order.listeners:
        return None
    _choose(forgery, to, one=forgery.way % 2 == 0)
    if to not in (forgery.receivers or ()):
        return None
    values, parameters = world.setting.layout.values, world.setting.layout.parameters
    begin, end = slices(values, order.members, order.shares)[message.slice]
    count = dict(parts(begin, end, order.settings.part, parameters))[message.offset]
    mean = torch.full((count,), 0.25 + to * (forgery.way // 2 % 2))
    lie, _ = encode_values(mean, EXACT)
    return message, lie


def wrong_piece(forgery: Forgery, to: int, message: BetweenMembers, payload: bytes) -> Forged:
    """A piece with other bytes."""
    assert isinstance(message, Piece)
    return (message, bytes([payload[0] ^ 1]) + payload[1:]) if payload else None


def _choose(forgery: Forgery, to: int, *, one: bool) -> None:
    """One receiver, the first that comes, or all."""
    if forgery.receivers is None:
        forgery.receivers = {to} if one else set(forgery.world.peers)
