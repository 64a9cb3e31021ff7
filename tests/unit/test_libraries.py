"""Models of the real libraries, trained as a peer trains them: their steps lead to the same bits when done again."""

from __future__ import annotations

import pytest
import torch

from axonp2p.training.messages import Prepare, RedoSegment
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.task import CheckedTask
from tests.unit.training.member_swarm import start_round

pytestmark = pytest.mark.slow
STEPS = 30

TRANSFORMERS = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel
import axonp2p.tasks

def data(split, shard, shards):
    text = torch.arange(400) % 7
    return [{"input_ids": text[at : at + 16], "labels": text[at : at + 16]} for at in range(shard, 100, shards)]

def model():
    return GPT2LMHeadModel(GPT2Config(vocab_size=8, n_positions=16, n_embd=16, n_layer=2, n_head=2))

Task = axonp2p.tasks.from_transformers(model, data, learning_rate=0.01, warmup=0.1)
"""
LIGHTNING = """
import torch
import lightning
from torch import nn
import axonp2p.tasks

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
    def training_step(self, batch, batch_idx):
        loss = nn.functional.cross_entropy(self.layers(batch[0]), batch[1])
        self.log("train_loss", loss, prog_bar=True)
        return loss
    def validation_step(self, batch, batch_idx):
        self.log("accuracy", (self.layers(batch[0]).argmax(1) == batch[1]).float().mean(), on_epoch=True)
    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.02)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

class Data(lightning.LightningDataModule):
    def setup(self, stage):
        points = torch.randn(600, 2)
        self.found = torch.utils.data.TensorDataset(points, (points.prod(1) > 0).long())
    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.utils.data.Subset(self.found, range(500)), batch_size=8, shuffle=True)
    def val_dataloader(self):
        return torch.utils.data.DataLoader(torch.utils.data.Subset(self.found, range(500, 600)), batch_size=8)

Task = axonp2p.tasks.from_lightning(Net, datamodule=Data)
"""


def trainer(folder, text):
    (folder / "task.py").write_text(text)
    order = Prepare(rank=0, job="j", task="task.py", shards=2, batch=16, seed=1, steps=2 * STEPS)
    return LocalTrainer(CheckedTask(folder, "task.py"), order)


@pytest.mark.parametrize(
    ("library", "text", "metric"), [("transformers", TRANSFORMERS, "loss"), ("lightning", LIGHTNING, "accuracy")]
)
def test_a_model_of_a_library_learns_and_its_steps_can_be_checked(tmp_path, library, text, metric):
    made = trainer(tmp_path, text)
    weights = made.first_state().weights
    before, _ = made.evaluate(weights, [0])
    made.begin(start_round(0, bytes(32), [0], rank=0, steps=STEPS, exchange_every=STEPS, mark_every=10))
    leg = made.leg(weights, lambda *_: LegVerdict.GO_ON)
    assert made.why_no_marks == ""
    after, samples = made.evaluate(weights - leg.difference, [0])
    assert samples == 50
    assert after[metric] < before[metric] if metric == "loss" else after[metric] > max(0.7, before[metric])
    begin, end = leg.places[1:3]
    order = RedoSegment(of=0, round=0, attempt=0, start=begin.mark, shards=[0], round_steps=STEPS, steps=10)
    torch.manual_seed(9)
    assert trainer(tmp_path, text).redo(order, begin.file, {}).end.name == end.mark.name
