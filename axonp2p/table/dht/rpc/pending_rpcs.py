"""Questions that are under way: sent, sent once more when slow, and ended by their answer or by the hard limit.

The package waits five seconds for each answer, never sends twice, and takes an answer from any address. Here every
sending has a number of its own, so that it is always known which one was answered and how long that took.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from axonp2p.errors import MalformedMessage
from axonp2p.table.dht.rpc.datagrams import decode_answer, encode_call
from axonp2p.table.dht.rpc.rpc import (
    FRAME_BYTES,
    ID_BYTES,
    REQUEST,
    Answer,
    Call,
    Question,
    name_of,
)
from axonp2p.table.dht.rpc.timing import HARD_LIMIT_S, Timing
from axonp2p.table.dht.rpc.traffic import Traffic

Address = tuple[str, int]

UNANSWERED_WHEN_CUT_OFF = 3


@dataclass(frozen=True, slots=True)
class RpcEnded:
    """How a question ended: with a sound answer and the seconds it took, or with neither."""

    answer: Answer | None
    seconds: float = 0.0
    telling: bool = True
    """Whether a missing answer says something of the one who was asked: not when nobody else answered meanwhile, as
    then it is rather this machine that is cut off."""


@dataclass(slots=True)
class _Waiting:
    address: Address
    question: Question
    datagram: bytes
    ends_at: float
    numbers: dict[bytes, float]
    """Number -> when it was sent."""
    on_end: Callable[[RpcEnded], None]
    on_slow: Callable[[], None] | None
    timer: asyncio.TimerHandle | None = None


class PendingRpcs:
    """The questions of one node that wait for an answer. Works on the running loop's time."""

    def __init__(
        self,
        caller: bytes,
        send: Callable[[bytes, Address], None],
        timing: Timing,
        traffic: Traffic,
        chance: random.Random,
    ) -> None:
        self.serves = False
        """The flag in the questions on their sender: whether others may ask it back."""
        self._caller = caller
        self._send = send
        self._timing = timing
        self._traffic = traffic
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._by_number: dict[bytes, _Waiting] = {}
        self._slow_ones: Counter[Address] = Counter()
        self._last_heard = -1.0
        self._stopped = False
        self._unanswered = 0

    def ask(
        self,
        address: Address,
        question: Question,
        on_end: Callable[[RpcEnded], None],
        on_slow: Callable[[], None] | None = None,
        size: int = 0,
    ) -> None:
        """Send `question`, padded to `size` bytes. `on_end` is called exactly once, unless the node stops before;
        `on_slow` at the soft limit, when there is no answer by then and the question is sent once more."""
        if self._stopped:
            self._loop.call_soon(on_end, RpcEnded(None, telling=False))
            return
        number = self._chance.randbytes(ID_BYTES)
        datagram = encode_call(Call(number, self._caller, self.serves, question), size)
        now = self._loop.time()
        waiting = _Waiting(address, question, datagram, now + HARD_LIMIT_S, {number: now}, on_end, on_slow)
        self._by_number[number] = waiting
        waiting.timer = self._loop.call_later(self._timing.soft_limit(address), self._slow, waiting)
        self._traffic.sent(name_of(question), len(datagram))
        self._send(datagram, address)

    def answered(self, number: bytes, datagram: bytes, sender: Address) -> None:
        """An answer came in: believed only from the address that was asked. Never raises."""
        waiting = self._by_number.get(number)
        if waiting is None or waiting.address != sender:
            self._traffic.refused("answer")
            return
        name = name_of(waiting.question)
        self._traffic.heard(f"{name}-answer", len(datagram))
        seconds = self._loop.time() - waiting.numbers[number]
        self._forget(waiting)
        try:
            answer = decode_answer(datagram, waiting.question)
        except MalformedMessage:
            self._traffic.refused(f"{name}-answer")
            waiting.on_end(RpcEnded(None))
            return
        self._last_heard = self._loop.time()
        self._unanswered = 0
        self._timing.answered(sender, seconds)
        waiting.on_end(RpcEnded(answer, seconds))

    def suspects(self, address: Address) -> bool:
        """Whether a question to it is past its soft limit just now: no other should wait for it."""
        return address in self._slow_ones

    @property
    def cut_off(self) -> bool:
        """Whether the last few questions, to whomever, all went unanswered."""
        return self._unanswered >= UNANSWERED_WHEN_CUT_OFF

    def stop(self) -> None:
        """End all that waits, and all that is asked from now on, as if nobody answered."""
        self._stopped = True
        for waiting in {id(one): one for one in self._by_number.values()}.values():
            self._forget(waiting)
            waiting.on_end(RpcEnded(None, telling=False))

    def _slow(self, waiting: _Waiting) -> None:
        self._slow_ones[waiting.address] += 1
        number = self._chance.randbytes(ID_BYTES)
        now = self._loop.time()
        waiting.numbers[number] = now
        self._by_number[number] = waiting
        waiting.timer = self._loop.call_later(max(0.0, waiting.ends_at - now), self._failed, waiting)
        again = bytes([REQUEST]) + number + waiting.datagram[FRAME_BYTES:]
        self._traffic.sent(f"{name_of(waiting.question)}-again", len(again))
        self._send(again, waiting.address)
        if waiting.on_slow is not None:
            waiting.on_slow()

    def _failed(self, waiting: _Waiting) -> None:
        self._forget(waiting)
        self._unanswered += 1
        telling = self._last_heard >= min(waiting.numbers.values())
        if telling:
            self._timing.silent(waiting.address, self._loop.time())
        waiting.on_end(RpcEnded(None, telling=telling))

    def _forget(self, waiting: _Waiting) -> None:
        if waiting.timer is not None:
            waiting.timer.cancel()
        if len(waiting.numbers) > 1:
            self._slow_ones[waiting.address] -= 1
            if not self._slow_ones[waiting.address]:
                del self._slow_ones[waiting.address]
        for number in waiting.numbers:
            self._by_number.pop(number, None)
