"""What a job file and the hired peers come to for the coordinator. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from axonp2p.client.events.events import RttsGuessed
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.jobs.spec import JobSpec, TrainSpec
from axonp2p.peers.capability import read_capability
from axonp2p.peers.coordinates import guess_between
from axonp2p.training.plan import Done, TrainPlan
from axonp2p.training.tuning.measured import Line
from axonp2p.training.wishes import COMPRESSIONS, ExchangeSettings

BYTES_S_IN_A_MBIT = 125_000.0


def plan_of(record: JobRecord, spec: JobSpec) -> TrainPlan:
    """What is to be trained, from where the job was left."""
    train = spec.train
    return TrainPlan(
        job=record.id,
        task=spec.task,
        shards=spec.need.peers,
        rounds=train.rounds,
        steps=train.steps,
        batch=train.batch,
        seed=train.seed,
        first_round=record.kept_round,
        start_state=bytes.fromhex(record.kept_state) if record.kept_state else None,
        wishes=wishes_of(train),
        keep_every=train.checkpoint,
        later=_later(record),
        life=record.lives - 1,
        rtt_s=max((peer.rtt_s for peer in record.peers if not peer.lost), default=0.0),
    )


def _later(record: JobRecord) -> tuple[Done, ...]:
    """Where the job had come to after its last state on the disk: what peers that waited may still hold."""
    done = [Done(record.ahead.finished.round + 1, bytes.fromhex(record.ahead.state))] if record.ahead else []
    if record.round > record.kept_round and record.state_name:
        done.append(Done(record.round, bytes.fromhex(record.state_name)))
    return tuple(done)


def wishes_of(train: TrainSpec) -> ExchangeSettings:
    """How the peers are to exchange."""
    return ExchangeSettings(
        bits=COMPRESSIONS[train.compression],
        density=train.density,
        warm_up_rounds=train.warm_up_rounds,
        exchange_every=train.exchange_every or 0,
        seconds=train.seconds,
        overlap=train.overlap,
        outer_learning_rate=train.outer_learning_rate,
        outer_momentum=train.outer_momentum,
        error_feedback=train.error_feedback,
        momentum_correction=train.momentum_correction,
        step_scaling=train.step_scaling,
        clip=train.clip,
        aggregation=train.aggregation,
        hostile=train.hostile,
    )


def lines_of(leases: Mapping[int, Lease]) -> dict[int, Line]:
    """What the peers' owners say of their lines, by rank."""
    return {rank: _declared(lease) for rank, lease in leases.items()}


def rtts_among(leases: Sequence[Lease]) -> RttsGuessed | None:
    """How far the peers are from each other, as their rows tell; None when they tell nothing."""
    seconds: dict[str, dict[str, float]] = {}
    for one, other in itertools.combinations(leases, 2):
        guess = guess_between(one.row.coordinate, other.row.coordinate)
        if guess is not None:
            seconds.setdefault(one.name, {})[other.name] = guess
    return RttsGuessed(seconds=seconds) if seconds else None


def _declared(lease: Lease) -> Line:
    offer = read_capability(lease.row.capability or {})
    return Line(offer.upload_mbit * BYTES_S_IN_A_MBIT, offer.download_mbit * BYTES_S_IN_A_MBIT)
