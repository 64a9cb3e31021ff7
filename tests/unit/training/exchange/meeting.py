"""A whole exchange among members that are late, slow or silent, as the test says, on a clock that only it moves."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

import torch
from torch import Tensor

from axonp2p.tensors.coding import EXACT, Coding
from axonp2p.training.exchange.arrivals import ArrivalTimes
from axonp2p.training.exchange.error_feedback import Past
from axonp2p.training.exchange.reorder_buffer import ReorderBuffer
from axonp2p.training.exchange.slice_exchange import Outgoing, SliceExchange
from axonp2p.training.exchange.terms import Terms, slices
from axonp2p.training.messages import ExchangeSettings, SlicePart
from tests.laboratory.exchange_settings import exchange_settings

MOST_SAMPLES = 1000

Delay = Callable[[int, int, SlicePart], float | None]
"""Seconds on the way from one rank to another; None: it never arrives."""


def terms(rank: int, members: Sequence[int], length: int, **changes: object) -> Terms:
    """Terms for equal slices of `length` values, changed as told."""
    shares = changes.pop("shares", None) or [1] * len(members)
    names = ExchangeSettings.__struct_fields__
    settings = exchange_settings(**{"part": 4} | {name: changes.pop(name) for name in names if name in changes})
    plain: dict[str, object] = {
        "settings": settings,
        "rank": rank,
        "round": 3,
        "attempt": 1,
        "exchange": 2,
        "members": tuple(sorted(members)),
        "listeners": (),
        "slices": slices(length, members, shares),
        "exact_from": length,
        "most_samples": MOST_SAMPLES,
        "gather": EXACT,
        "result": EXACT,
    }
    return Terms(**(plain | changes))


class Meeting:
    """The exchange of some members; `sendings` and `samples` by rank."""

    def __init__(
        self, sendings: Mapping[int, Tensor], samples: Mapping[int, int] | None = None, **changes: object
    ) -> None:
        self.now = 0.0
        self.members = sorted(sendings)
        self.sendings = {rank: values.clone() for rank, values in sendings.items()}
        self.samples = samples or dict.fromkeys(sendings, 1)
        self.arrivals = {rank: ArrivalTimes() for rank in sendings}
        self.exchanges: dict[int, SliceExchange] = {}
        self.told: dict[int, Tensor] = {}
        """The mean, as it was told part by part."""
        self.codings: dict[int, Coding] = {}
        self.pasts: dict[int, Past] = {}
        self.arrived: list[tuple[float, int, int, SlicePart]] = []
        self._early = {rank: ReorderBuffer(10**6) for rank in [*sendings, *changes.get("listeners", ())]}
        self.changes = changes
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()

    @property
    def length(self) -> int:
        return len(self.sendings[self.members[0]])

    def terms_for(self, rank: int) -> Terms:
        own = {"gather": self.codings[rank]} if rank in self.codings else {}
        return terms(rank, self.members, self.length, **(self.changes | own))

    def play(
        self,
        delay: Delay = lambda *_: 0.0,
        *,
        begins: Mapping[int, float] | None = None,
        a_part: Mapping[int, float] | None = None,
    ) -> None:
        """Until nothing happens any more. Ranks begin at `begins` (0), and need `a_part` seconds (0) for each part."""
        self._delay = delay
        for rank in self._early:
            self._at((begins or {}).get(rank, 0.0), lambda rank=rank: self._begin(rank, (a_part or {}).get(rank, 0.0)))
        while True:
            deadlines = [at for exchange in self.exchanges.values() if (at := exchange.deadline()) is not None]
            if self._waiting and self._waiting[0][0] <= min(deadlines, default=float("inf")):
                self.now, _, happens = heapq.heappop(self._waiting)
                happens()
            elif deadlines:
                self.now = max(self.now, min(deadlines))
                for rank, exchange in self.exchanges.items():
                    self._say(rank, exchange.due(self.now))
            else:
                return

    def everyone(self) -> list[SliceExchange]:
        return [self.exchanges[rank] for rank in sorted(self.exchanges)]

    def _begin(self, rank: int, a_part: float) -> None:
        sending = self.sendings[rank].clone() if rank in self.sendings else None
        arrivals = self.arrivals.get(rank, ArrivalTimes())
        own = self.terms_for(rank)
        told = self.told[rank] = torch.full((self.length,), torch.nan)

        def agreed(begin: int, mean: Tensor) -> None:
            place = slice(begin, begin + len(mean))
            assert told[place].isnan().all(), "a part of the mean was told twice"
            told[place] = mean

        samples, past = self.samples.get(rank, 0), self.pasts.get(rank)
        exchange = self.exchanges[rank] = SliceExchange(own, sending, samples, arrivals, self.now, past, agreed)
        for sender, part, payload in self._early[rank].take(own):
            self._say(rank, exchange.receive(sender, part, payload, self.now))
        self._go_on(rank, exchange.outgoing(), a_part)

    def _go_on(self, rank: int, outgoing: Iterator[Outgoing], a_part: float) -> None:
        if (said := next(outgoing, None)) is not None:
            self._say(rank, [said])
            self._at(self.now + a_part, lambda: self._go_on(rank, outgoing, a_part))

    def _say(self, rank: int, parts: list[Outgoing]) -> None:
        for to, part, payload in parts:
            seconds = self._delay(rank, to, part)
            if seconds is not None:
                arrive = (rank, to, part, payload)
                self._at(self.now + seconds, lambda arrive=arrive: self._arrive(*arrive))

    def _arrive(self, sender: int, to: int, part: SlicePart, payload: bytes) -> None:
        self.arrived.append((self.now, sender, to, part))
        if to in self.exchanges:
            self._say(to, self.exchanges[to].receive(sender, part, payload, self.now))
        else:
            self._early[to].keep(sender, part, payload)

    def _at(self, when: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._waiting, (when, next(self._number), happens))


def vectors(members: Sequence[int], length: int, seed: int = 0) -> dict[int, Tensor]:
    chance = torch.Generator().manual_seed(seed)
    return {rank: torch.randn(length, generator=chance) for rank in members}


def weighted_mean(sendings: Mapping[int, Tensor], samples: Mapping[int, int]) -> Tensor:
    total = sum(samples[rank] for rank in sendings)
    added = torch.zeros(len(next(iter(sendings.values()))), dtype=torch.float64)
    for rank in sorted(sendings):
        added += sendings[rank].double() * samples[rank]
    return (added / total).float()
