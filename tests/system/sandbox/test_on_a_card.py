"""A sandbox with a real GPU: it computes there, is seen there, and gets no further. Not run where there is no card."""

from __future__ import annotations

from typing import Any

import pytest

from axonp2p.sandbox.attacks.run import try_the_wall
from axonp2p.sandbox.card_trial import why_no_cuda
from axonp2p.sandbox.gpu_access import GpuAccess
from axonp2p.sandbox.limits import Limits
from axonp2p.sandbox.watch.process_tree import descendants
from peer_daemon.gpus.gpu_use import GpuHolder, OwnersUse, used_mb, why_over
from peer_daemon.gpus.nvml import NvmlLook, see_gpus
from peer_daemon.lending.lent_gpus import gpus_to_lend

pytestmark = pytest.mark.gpu

MULTIPLY = """
    import os, time, torch
    found = torch.randn(2048, 2048, device="cuda", requires_grad=True)
    loss = torch.nn.functional.relu(found @ found).sum()
    loss.backward()
    torch.cuda.synchronize()
    moved = bool(found.grad.abs().sum() > 0)
    answer({"cards": torch.cuda.device_count(), "gradient": moved, "is": os.environ["AXON_DEVICE"]})
    time.sleep(30)
"""


@pytest.fixture(scope="module")
def card() -> GpuAccess:
    seen = see_gpus()
    lent = gpus_to_lend(seen, allowed=True, memory_mb=0)
    if not lent:
        pytest.skip(f"no card can be lent here: {seen.unseen or seen}")
    return lent[0].access


def with_card(card: GpuAccess) -> Limits:
    return Limits(cores=2, memory_mb=8192, scratch_mb=256, gpu=card)


async def test_torch_computes_there_and_the_driver_names_the_worker(sandboxed: Any, card: GpuAccess) -> None:
    async with sandboxed.worker(MULTIPLY, with_card(card)) as worker:
        _, payload = await worker.channel.receive()
        assert bytes(payload) == b'{"cards": 1, "gradient": true, "is": "cuda"}', worker.log().decode()
        looking = NvmlLook([card.uuid])
        look = looking.look()[card.uuid]
        looking.close()
        holder = GpuHolder(frozenset(descendants(worker.pid, 100)), memory_mb=1)
        assert used_mb(look, holder) > 16
        assert why_over(look, holder)
        assert OwnersUse().decide({card.uuid: look}, {card.uuid: holder}, 0, 0.0) == {}


async def test_the_doctors_trial_computes_there(card: GpuAccess) -> None:
    assert not await why_no_cuda(card)


async def test_no_attack_gets_beyond_the_card(card: GpuAccess) -> None:
    tried = await try_the_wall(card)
    assert [f"{one.name}: {one.said}" for one in tried if not one.held] == []
    assert not [one.name for one in tried if one.said.startswith("not run")]


async def test_a_worker_without_the_card_has_none(sandboxed: Any, card: GpuAccess) -> None:
    task = "import torch; answer(torch.cuda.is_available())"
    assert await sandboxed.answer(task, Limits(cores=2, memory_mb=4096, scratch_mb=64)) is False
