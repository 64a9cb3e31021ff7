"""Slots and cards: as many jobs with a GPU at once as there are cards, and a job that needs none gets none."""

from __future__ import annotations

import msgspec
import pytest

from axonp2p.errors import Busy, Refused
from axonp2p.jobs.messages import TakeLease
from axonp2p.sandbox.gpu_access import GpuAccess
from peer_daemon.execution.lease_context import limits_of
from peer_daemon.lending.leases import LEAST_AGE_S, Leases
from peer_daemon.lending.lent_gpus import GpuAssignment, LentGpu
from tests.unit.peer_daemon.lending.test_leases import CALLER, NOW, another, ask, make_leases, token

CARD = LentGpu("a card", "8.6", "580.1", GpuAccess("GPU-1", (("/dev/nvidia0", "/dev/nvidia0"),), (), 8000))


def leases_with_a_card(slots: int = 2) -> Leases:
    leases = make_leases(slots=slots, free=slots)
    leases.gpus = GpuAssignment([CARD])
    return leases


def with_gpu(wish: TakeLease, memory_mb: int = 4000, capability: str = "") -> TakeLease:
    return msgspec.structs.replace(wish, gpu_memory_mb=memory_mb, gpu_capability=capability)


def test_a_job_that_asks_for_a_card_has_it_alone_until_its_lease_ends() -> None:
    leases = leases_with_a_card()
    lease = leases.take(with_gpu(ask(token(1))), CALLER, NOW)
    assert limits_of(lease, "idle").gpu is CARD.access
    assert [gpu.taken for gpu in leases.gpus_told(NOW)] == [True]
    wish, caller = another(2)
    with pytest.raises(Busy, match="every GPU that would do is taken"):
        leases.take(with_gpu(wish), caller, NOW)
    leases.ended(lease)
    assert leases.take(with_gpu(wish), caller, NOW).gpu is CARD.access


def test_a_job_that_asks_for_none_gets_none() -> None:
    lease = leases_with_a_card().take(ask(token(1)), CALLER, NOW)
    assert lease.gpu is None
    assert limits_of(lease, "idle").start().devices == []


def test_a_capability_alone_asks_for_a_card() -> None:
    assert leases_with_a_card().take(with_gpu(ask(token(1)), 0, "8.0"), CALLER, NOW).gpu is CARD.access
    with pytest.raises(Refused, match=r"lends no GPU with capability 9\.0"):
        leases_with_a_card().take(with_gpu(ask(token(1)), 0, "9.0"), CALLER, NOW)


def test_a_refusal_takes_neither_slot_nor_card() -> None:
    leases = leases_with_a_card()
    with pytest.raises(Refused):
        leases.take(with_gpu(ask(token(1)), 9000), CALLER, NOW)
    assert leases.free(NOW) == 2
    leases.take(ask(token(2)), CALLER, NOW)
    full = leases_with_a_card(slots=1)
    full.take(ask(token(1)), CALLER, NOW)
    with pytest.raises(Busy, match="every slot is taken"):
        full.take(with_gpu(another(2)[0]), another(2)[1], NOW)
    assert full.gpus_told(NOW)[0].taken is msgspec.UNSET


def test_an_idle_lease_gives_way_for_its_card_though_slots_are_free() -> None:
    leases = leases_with_a_card()
    idle = leases.take(with_gpu(ask(token(1))), CALLER, NOW)
    leases.seen(idle, LEAST_AGE_S + 1, NOW + 70)
    assert leases.gpus_told(NOW + 70)[0].taken is msgspec.UNSET
    wish, caller = another(2)
    newer = leases.take(with_gpu(wish), caller, NOW + 70)
    assert newer.instead_of == (idle.reservation,)
    # It did not go in time, so the newer one has to go.
    leases.ended(newer)
    assert leases.gpus_told(NOW + 71)[0].taken is True
    leases.ended(idle)
    assert leases.gpus_told(NOW + 72)[0].taken is msgspec.UNSET
    assert leases.free(NOW + 72) == 2
