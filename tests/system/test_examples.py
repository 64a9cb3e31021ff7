"""The real jobs in `examples/` on real peers, shortened. `digits`, whole, is what test_demo.py trains."""

from __future__ import annotations

import contextlib
import json
import os
import re
import runpy
import shutil
import struct
import subprocess
import sys
import zlib
from collections import Counter
from pathlib import Path

import pytest
from torch import Tensor

import axonp2p
from axonp2p.errors import IndexUnreachable
from axonp2p.kinds.train.events import RoundFinished
from axonp2p.sandbox.child import why_no_sandbox
from axonp2p.training.trainer.weights import load
from tests.system.processes import Processes
from tests.system.small_job import write_job

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]


def shortened(source: Path, folder: Path, **numbers: int) -> Path:
    """A copy of a job with other numbers in its job.toml."""
    shutil.copytree(source, folder)
    text = (folder / "job.toml").read_text()
    for key, number in numbers.items():
        text, found = re.subn(rf"(?m)^{key} = .*$", f"{key} = {number}", text)
        assert found == 1, key
    (folder / "job.toml").write_text(text)
    return folder


def test_text_learns_what_source_code_looks_like(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    job = swarm.submit(shortened(EXAMPLES / "text", tmp_path / "text", peers=2, rounds=3, steps=15, batch=4))
    rounds = [event for event in job.events() if isinstance(event, RoundFinished)]
    weights = job.fetch()
    losses = [event.metrics["loss"] for event in rounds]
    assert len(losses) == 3
    assert losses[-1] < losses[0] < 5.6  # ln 256 = 5.55: what knowing nothing costs
    assert 900_000 < sum(tensor.numel() for tensor in weights.values()) < 1_200_000


def trained(swarm: axonp2p.Swarm, folder: Path) -> tuple[list[RoundFinished], dict[str, Tensor]]:
    """Its rounds, and the weights. The packages come from the index; without one the test is skipped."""
    job = swarm.submit(folder)
    try:
        seen = list(job.events())
    except IndexUnreachable as error:
        pytest.skip(error.message)
    return [event for event in seen if isinstance(event, RoundFinished)], job.fetch()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_transformers_come_along_with_the_job(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    folder = shortened(EXAMPLES / "transformers", tmp_path / "job", peers=2, rounds=2, steps=5, batch=4)
    rounds, weights = trained(swarm, folder)
    losses = [event.metrics["loss"] for event in rounds]
    assert len(losses) == 2
    assert losses[1] < losses[0] < 5.6
    assert 400_000 < sum(tensor.numel() for tensor in weights.values()) < 500_000


LIGHTNING = """
import lightning as L
import torch
from torch import nn
from torch.utils.data import TensorDataset

import axonp2p.tasks


class Line(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        inputs, wanted = batch
        loss = nn.functional.mse_loss(self.net(inputs), wanted)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.training_step(batch, batch_idx))

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        return {"optimizer": optimizer, "lr_scheduler": {
            "scheduler": torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.5, 10), "interval": "step"}}


def data(split, shard, shards):
    generator = torch.Generator().manual_seed(1 if split == "train" else 2)
    inputs = torch.randn(400, 4, generator=generator)[shard::shards]
    return TensorDataset(inputs, inputs @ torch.tensor([[1.0], [-2.0], [0.5], [3.0]]))


Task = axonp2p.tasks.from_lightning(Line, data=data)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_lightning_comes_along_with_the_job(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    folder = write_job(tmp_path / "job", peers=2, least=2, rounds=3, task=LIGHTNING)
    text = (folder / "job.toml").read_text().replace('"800 MiB"', '"1200 MiB"')
    (folder / "job.toml").write_text(f'{text}[packages]\ninstall = ["lightning"]\n')
    rounds, weights = trained(swarm, folder)
    losses = [event.metrics["val_loss"] for event in rounds]
    assert losses[-1] < losses[0] / 2
    assert sorted(weights) == ["net.bias", "net.weight"]


def ran(processes: Processes, home: Path, script: str, *words: str) -> str:
    """What a script of an example prints."""
    command = [sys.executable, str(EXAMPLES / script), "--tracker", processes.tracker, "--peers", "2", *words]
    environment = {**os.environ, "AXON_HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_words_of_the_library_are_counted_as_a_loop_counts_them(processes: Processes, tmp_path: Path) -> None:
    printed = ran(processes, tmp_path, "wordcount/most.py", "--words", "3").splitlines()[1:]
    loop: Counter[str] = Counter()
    task = runpy.run_path(str(EXAMPLES / "wordcount" / "task.py"))
    for line in (EXAMPLES / "wordcount" / "items.jsonl").read_text().splitlines():
        loop.update(task["count"](json.loads(line)))
    assert printed == [f"{count:8,}  {word}" for word, count in loop.most_common(3)]


def test_a_picture_is_put_together_of_tiles(processes: Processes, tmp_path: Path) -> None:
    ran(processes, tmp_path, "render/mandelbrot.py", "--size", "2", "2", "--out", str(tmp_path / "picture.png"))
    picture = (tmp_path / "picture.png").read_bytes()
    width, height = struct.unpack(">II", picture[16:24])
    place = picture.index(b"IDAT")
    pixels = zlib.decompress(picture[place + 4 : place + 4 + int.from_bytes(picture[place - 4 : place])])
    assert (width, height, len(pixels)) == (128, 128, 128 * (1 + 3 * 128))
    assert pixels.count(b"\x30\x30\x30") < 50, "no tile is left grey"
    middle = pixels[64 * (1 + 3 * 128) + 1 + 3 * 64 :][:3]
    assert middle == bytes(3), "-0.7 is in the set"


def test_a_grid_search_finds_what_it_finds_here(processes: Processes, tmp_path: Path) -> None:
    *_, best = ran(processes, tmp_path, "grid-search/search.py").splitlines()
    assert best == "best: {'C': 1, 'gamma': 0.001} with 0.9722"


def test_lora_sends_its_adapters_only_and_gives_the_whole_model(swarm: axonp2p.Swarm, tmp_path: Path) -> None:
    job = swarm.submit(shortened(EXAMPLES / "lora", tmp_path / "lora", peers=2, rounds=6))
    sizes, rounds = set(), []
    for event in job.events():
        if isinstance(event, RoundFinished):
            rounds.append(event)
            with contextlib.suppress(FileNotFoundError):  # an older one may go just now
                sizes |= {file.stat().st_size for file in job.folder.glob("states/0*.safetensors")}
    weights = job.fetch()
    base = load(EXAMPLES / "lora" / "base.safetensors")
    # Untrained it reads one turned digit in ten; on a busy machine a round may count the work of one peer.
    assert rounds[-1].metrics["accuracy"] > 0.3
    assert max(sizes) < 2 * 4 * 2_344 + 4096, "weights and momentum of 2,344 parameters"
    assert {f"{number}.layer.{kind}" for number in (0, 2, 4) for kind in ("weight", "bias")} < weights.keys()
    for name, tensor in base.items():
        number, _, kind = name.partition(".")
        assert (weights[f"{number}.layer.{kind}"] == tensor.float()).all()
