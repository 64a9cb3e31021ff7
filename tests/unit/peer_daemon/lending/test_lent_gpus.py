"""One card, one lease."""

from __future__ import annotations

import msgspec
import pytest

from axonp2p.errors import Busy, Refused
from axonp2p.sandbox.gpu_access import GpuAccess
from peer_daemon.lending.lent_gpus import GpuAssignment, LentGpu


def card(uuid: str, memory_mb: int, capability: str = "8.6") -> LentGpu:
    return LentGpu(f"card {uuid}", capability, "580.1", GpuAccess(uuid, (), (), memory_mb))


SMALL, LARGE = card("small", 8000), card("large", 24_000, "9.0")


@pytest.fixture
def gpus() -> GpuAssignment:
    return GpuAssignment([LARGE, SMALL])


def take(gpus: GpuAssignment, reservation: str, memory_mb: int = 1000, capability: str = "") -> str:
    found, _ = gpus.choose(memory_mb, capability, idle=())
    gpus.take(found.access.uuid, reservation)
    return found.access.uuid


def test_a_small_job_leaves_the_large_card_to_others(gpus: GpuAssignment) -> None:
    assert take(gpus, "a") == "small"
    assert take(gpus, "b") == "large"
    with pytest.raises(Busy, match="every GPU that would do is taken"):
        gpus.choose(1000, "", idle=())


def test_a_card_is_free_again_when_its_lease_is_over(gpus: GpuAssignment) -> None:
    take(gpus, "a")
    gpus.release("a")
    gpus.release("nobody")
    assert take(gpus, "b") == "small"


def test_what_no_card_can_do_is_refused(gpus: GpuAssignment) -> None:
    with pytest.raises(Refused, match=r"this peer lends no GPU with 30000 MiB and capability 9\.0"):
        gpus.choose(30_000, "9.0", idle=())
    with pytest.raises(Refused, match="this peer lends no GPU with 1 MiB"):
        GpuAssignment().choose(1, "", idle=())


def test_an_idle_lease_gives_way_and_takes_nothing_with_it(gpus: GpuAssignment) -> None:
    take(gpus, "a", 10_000)
    found, going = gpus.choose(10_000, "", idle=("a",))
    assert (found, going) == (LARGE, "a")
    gpus.take(found.access.uuid, "b")
    gpus.release("a")
    with pytest.raises(Busy):
        gpus.choose(10_000, "", idle=())


def test_a_free_card_goes_before_that_of_an_idle_lease(gpus: GpuAssignment) -> None:
    take(gpus, "a")
    assert gpus.choose(1000, "", idle=("a",)) == (LARGE, "")


def test_a_card_that_its_owner_uses_is_nobodys(gpus: GpuAssignment) -> None:
    assert gpus.wanted({"large"})
    assert not gpus.wanted({"large"})
    with pytest.raises(Busy):
        gpus.choose(10_000, "", idle=())
    assert [(gpu.name, gpu.taken) for gpu in gpus.told(())] == [("card small", msgspec.UNSET), ("card large", True)]
    assert gpus.wanted(())
    assert gpus.choose(10_000, "", idle=())[0] is LARGE


def test_the_row_names_each_card_without_its_uuid(gpus: GpuAssignment) -> None:
    take(gpus, "a")
    large, small = gpus.told(())  # free ones first
    assert (large.name, large.memory_mb, large.capability, large.driver) == ("card large", 24_000, "9.0", "580.1")
    assert (large.taken, small.taken) == (msgspec.UNSET, True)
    assert [gpu.taken for gpu in gpus.told(("a",))] == [msgspec.UNSET] * 2


def test_cards_that_are_alike_are_named_once_free_and_once_taken() -> None:
    four = GpuAssignment([LentGpu("H200", "9.0", "580.1", GpuAccess(f"GPU-{one}", (), (), 8000)) for one in range(4)])
    assert len(four.told(())) == 1
    four.take("GPU-0", "a")
    four.take("GPU-1", "b")
    assert [gpu.taken for gpu in four.told(())] == [msgspec.UNSET, True]
