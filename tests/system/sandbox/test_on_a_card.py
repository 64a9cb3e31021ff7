"""A sandbox with a real GPU: it computes there, is seen there, and gets no further. Not run where there is no card."""

from __future__ import annotations

import dataclasses
import json
import textwrap
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

TAKE_AGAIN = """
    import os, tempfile
    from pathlib import Path
    import torch
    from axonp2p.tensors.coding import EXACT
    from axonp2p.training.messages import ExchangeSettings, Prepare, RedoSegment, StartRound
    from axonp2p.training.trainer.device import chosen_device, open_device
    from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
    from axonp2p.training.trainer.task import CheckedTask
    from axonp2p.training.worker.redo_server import RedoServer
    from axonp2p.training.worker.warm_up import warm_up
    from axonp2p.training.worker.worker_main import load

    load(1)
    server = RedoServer(1)
    open_device(device := chosen_device(os.environ))
    warm_up(device)
    folder = Path(tempfile.mkdtemp())
    (folder / "task.py").write_text(LEARN)
    prepare = Prepare(rank=0, job="job", task="task.py", shards=2, batch=8, seed=1)
    made = LocalTrainer(CheckedTask(folder, "task.py"), prepare, device)
    settings = ExchangeSettings(
        exchange_every=8, overlap=False, part=1024, patience=1.0, outer_learning_rate=1.0, outer_momentum=0.0
    )
    made.begin(StartRound(
        round=0, attempt=0, state=bytes(32), members=[0], listeners=[], shards=[0], steps=8, seconds=0.0,
        settings=settings, shares=[1], gather=EXACT, result=EXACT, mark_every=4,
    ))
    begin, end = made.leg(made.first_state().weights, lambda *_: LegVerdict.GO_ON).places[:2]
    order = RedoSegment(of=0, round=0, attempt=0, start=begin.mark, shards=[0], round_steps=8, steps=4)
    for _ in range(2):
        said = server.for_job(folder, prepare)(order, begin.file, made, lambda: True)
    answer([said.failed, said.end == end.mark])
"""
LEARN = """
import torch
from torch import nn

class Task:
    def model(self):
        return nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))

    def data(self, split, shard, shards):
        points = torch.randn(64, 2, generator=torch.Generator().manual_seed(3))
        return torch.utils.data.TensorDataset(points, points.sum(1, keepdim=True))

    def loss(self, model, batch):
        return nn.functional.mse_loss(model(batch[0]), batch[1])
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


@pytest.mark.parametrize("given", [True, False])
async def test_steps_are_taken_again_in_a_process_of_their_own_as_a_worker_does(
    sandboxed: Any, card: GpuAccess, given: bool
) -> None:
    task = f"LEARN = {LEARN!r}\n{textwrap.dedent(TAKE_AGAIN)}"
    limits = with_card(card) if given else dataclasses.replace(with_card(card), gpu=None)
    async with sandboxed.worker(task, limits) as worker:
        _, payload = await worker.channel.receive()
        assert json.loads(bytes(payload)) == ["", True], worker.log().decode()


async def test_the_doctors_trial_computes_there(card: GpuAccess) -> None:
    assert not await why_no_cuda(card)


async def test_no_attack_gets_beyond_the_card(card: GpuAccess) -> None:
    tried = await try_the_wall(card)
    assert [f"{one.name}: {one.said}" for one in tried if not one.held] == []
    assert not [one.name for one in tried if one.said.startswith("not run")]


async def test_a_worker_without_the_card_has_none(sandboxed: Any, card: GpuAccess) -> None:
    task = "import torch; answer(torch.cuda.is_available())"
    assert await sandboxed.answer(task, Limits(cores=2, memory_mb=4096, scratch_mb=64)) is False
