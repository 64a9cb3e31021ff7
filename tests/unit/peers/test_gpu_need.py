"""A need for a GPU, and what peers offer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from axonp2p.peers.capability import EVERY_GPU_TAKEN, Capability, Gpu, Need, as_map, read_capability, read_need, why_not
from axonp2p.wire.codec import encode


def offer(*gpus: Gpu) -> Capability:
    return Capability(
        cores=2, memory_mb=4096, disk_mb=512, gflops=1, slots=1, free=1, python="3.11", packages={}, kinds=["train"],
        gpus=list(gpus),
    )  # fmt: skip


def gpu(memory_mb: int = 8192, capability: str = "8.6", **more: Any) -> Gpu:
    return Gpu(name="a card", memory_mb=memory_mb, capability=capability, **more)


def test_a_job_that_needs_no_gpu_goes_anywhere() -> None:
    assert why_not(offer(), Need()) == ""
    assert why_not(offer(gpu(taken=True)), Need()) == ""


@pytest.mark.parametrize(
    ("need", "why"),
    [
        (Need(gpu_memory_mb=8192), ""),
        (Need(gpu_memory_mb=8193), "has no GPU with 8193 MiB"),
        (Need(gpu_capability="8.6"), ""),
        (Need(gpu_capability="9.0"), "has no GPU with capability 9.0"),
        (Need(gpu_capability="10.0"), "has no GPU with capability 10.0"),
        (Need(gpu_memory_mb=1, gpu_capability="12.1"), "has no GPU with 1 MiB and capability 12.1"),
    ],
)
def test_memory_and_capability_are_those_of_one_card(need: Need, why: str) -> None:
    assert why_not(offer(gpu()), need) == why


def test_the_memory_of_one_card_and_the_capability_of_another_do_not_add_up() -> None:
    both = offer(gpu(24_000, "7.5"), gpu(8192, "9.0"))
    assert why_not(both, Need(gpu_memory_mb=16_000, gpu_capability="8.0")) == (
        "has no GPU with 16000 MiB and capability 8.0"
    )


def test_a_capability_that_is_not_told_meets_none() -> None:
    assert why_not(offer(Gpu(name="old", memory_mb=8192)), Need(gpu_capability="3.0")).startswith("has no GPU")


def test_cards_that_are_taken_are_named_as_such_and_shown_to_who_looks_around() -> None:
    busy = offer(gpu(taken=True), gpu(1024))
    assert why_not(busy, Need(gpu_memory_mb=4096)) == EVERY_GPU_TAKEN
    assert why_not(busy, Need(gpu_memory_mb=1024)) == ""
    assert why_not(busy, Need(gpu_memory_mb=4096, also_taken=True)) == ""


def test_what_is_not_said_is_not_sent() -> None:
    """Programs of any age read a row and a need; each refuses a field that it does not know."""
    assert as_map(offer(Gpu(name="a", memory_mb=1)))["gpus"] == [{"name": "a", "memory_mb": 1}]
    assert msgspec.msgpack.decode(encode(Need(gpu_memory_mb=5))) == {"gpu_memory_mb": 5}
    assert read_capability(as_map(offer(gpu(driver="580.1", taken=True)))).gpus[0].taken is True
    assert read_need({"gpu_capability": "9.0"}).gpu_capability == "9.0"
