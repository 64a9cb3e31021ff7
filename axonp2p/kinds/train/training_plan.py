"""The plan for the coordinator, from a job file and the hired peers. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from axonp2p.client.leasing.lease import Lease
from axonp2p.kinds.train.record import TrainRecord
from axonp2p.kinds.train.section import TrainJob
from axonp2p.peers.capability import read_capability
from axonp2p.training.plan import Done, TrainPlan
from axonp2p.training.tuning.link_statistics import Line

BYTES_S_IN_A_MBIT = 125_000.0


def plan_of(record: TrainRecord, spec: TrainJob) -> TrainPlan:
    """The plan of the training, from where the job was left."""
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
        options=train,
        step_options=train.step_options,
        memory_mb=spec.need.memory,
        keep_every=train.checkpoint,
        later=_later(record),
        life=record.lives - 1,
        ends_after=record.stops_after,
        rtt_s=max((peer.rtt_s for peer in record.peers if not peer.lost), default=0.0),
    )


def _later(record: TrainRecord) -> tuple[Done, ...]:
    """Where the job had come to after its last state on the disk: what peers that waited may still hold."""
    done = [Done(record.ahead.finished.round + 1, bytes.fromhex(record.ahead.state))] if record.ahead else []
    if record.round > record.kept_round and record.state_name:
        done.append(Done(record.round, bytes.fromhex(record.state_name)))
    return tuple(done)


def lines_of(leases: Mapping[int, Lease]) -> dict[int, Line]:
    """The limits that the peers' owners set to their lines, by rank."""
    return {rank: _declared(lease) for rank, lease in leases.items()}


def _declared(lease: Lease) -> Line:
    offer = read_capability(lease.row.capability or {})
    return Line(offer.upload_mbit * BYTES_S_IN_A_MBIT, offer.download_mbit * BYTES_S_IN_A_MBIT)
