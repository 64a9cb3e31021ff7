"""The plan of a training, and the samples that each local step reads. Pure: the same numbers on every machine.

Step s of a job reads the positions [s * batch, (s + 1) * batch) of an endless stream of samples: one shuffled epoch
after the other. Position alone decides, so a round that is redone, or a job that is resumed, reads exactly what it
would have read, and no iterator's state has to be kept.
"""

from __future__ import annotations

import hashlib
import random
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

from axonp2p.training.options import ExchangeOptions, StepOptions

ATTEMPTS_A_LIFE = 2**20


@dataclass(frozen=True)
class Done:
    """A number of rounds, and the name of the state that they led to."""

    rounds: int
    state: bytes


@dataclass(frozen=True)
class TrainPlan:
    """One training job, as coordinator and workers need to know it."""

    job: str
    task: str
    """The task's file, relative to the bundle."""
    shards: int
    """Into how many parts the data is divided; at least as many as there are members, at most 64."""
    rounds: int
    steps: int
    """Local steps a round."""
    batch: int
    """Samples a step."""
    seed: int
    first_round: int = 0
    """Where to go on: rounds are counted from 0 over the whole life of a job."""
    start_state: bytes | None = None
    """The hash of the state that `first_round` starts from; None means the task's own first weights."""
    options: ExchangeOptions = field(default_factory=ExchangeOptions)
    """How the members are to exchange."""
    step_options: StepOptions = field(default_factory=StepOptions)
    """How they are to take their steps."""
    memory_mb: int = 0
    """MiB of memory that the job asks of each member."""
    rtt_s: float = 0.0
    """The longest round trip to a member that was measured."""
    keep_every: int = 0
    """After every so many rounds, and after the last, the client keeps the state; 0: it keeps none."""
    later: tuple[Done, ...] = ()
    """Where the job had come to after that when its last coordinator died, the newest first. It goes on from there if a
    member still holds it."""
    life: int = 0
    """How many coordinators the job had before."""
    ends_after: int = 0
    """After so many rounds the job ends, whatever `rounds` says, which `Task.schedule` goes by; 0: after them all."""

    @property
    def first_attempt(self) -> int:
        """The number of the first attempt at each round: what was said in an earlier life is known by a smaller one."""
        return self.life * ATTEMPTS_A_LIFE


def batch_indices(samples: int, batch: int, seed: int, first_step: int, steps: int) -> list[list[int]]:
    """The sample numbers of `steps` steps from `first_step` on, `batch` for each, out of `samples` there are.

    For one stream over all rounds pass the same `seed` every time and `round * steps` as `first_step`.
    A batch may be larger than an epoch. Raises ValueError when there are no samples or the batch is empty.
    """
    if samples < 1 or batch < 1:
        raise ValueError(f"cannot draw batches of {batch} from {samples} samples")
    order = partial(_epoch, samples, seed)
    return [positions(order, samples, step * batch, batch) for step in range(first_step, first_step + steps)]


def positions(order: Callable[[int], Sequence[int]], samples: int, start: int, count: int) -> list[int]:
    """Of an endless stream of epochs, the sample numbers at `count` positions from `start` on.

    `order` gives an epoch's sample numbers, `samples` of them.
    """
    found: list[int] = []
    while count:
        epoch, offset = divmod(start, samples)
        piece = order(epoch)[offset : offset + count]
        found.extend(piece)
        start += len(piece)
        count -= len(piece)
    return found


def seed_for(job_seed: int, round: int, shards: Iterable[int]) -> int:
    """The seed of one member's chance in one round, below 2**63: other for every round and every set of shards.

    For the stream of samples pass round 0 always, so that epochs do not begin anew with each round.
    """
    return _number("round", job_seed, round, *sorted(shards))


def seed_at(job_seed: int, round: int, shards: Iterable[int], step: int) -> int:
    """The seed of one member's chance from this local step of a round on: it begins anew at each mark."""
    return _number("mark", job_seed, round, step, *sorted(shards))


def seed_of_epoch(seed: int, epoch: int) -> int:
    """The seed of the order in which a stream's epoch is read."""
    return _number("epoch", seed, epoch)


def seed_of_reading(seed: int, step: int) -> int:
    """The seed of what is drawn by chance while the samples of a stream's step are read ahead."""
    return _number("reading", seed, step)


@lru_cache(maxsize=4)
def _epoch(samples: int, seed: int, epoch: int) -> array[int]:
    """One epoch's order. Kept: a permutation takes time that grows with the data, and a step needs little of it."""
    order = array("Q", range(samples))
    random.Random(seed_of_epoch(seed, epoch)).shuffle(order)
    return order


def _number(purpose: str, *parts: int) -> int:
    text = " ".join((purpose, *map(str, parts)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
