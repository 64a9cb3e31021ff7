"""Handwritten digits: which of 0 to 9 is drawn in an image of 8 x 8 pixels?"""

import gzip
import random
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset

HELD_OUT = 360
"""Images that nobody trains on: the same ones always."""


class Task:
    """What Axon asks of a task; plain PyTorch."""

    def model(self):
        """64 pixels, 128 hidden units of which dropout rests some, 10 digits."""
        return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))

    def data(self, split, shard, shards):
        """Every `shards`-th image of the split, beginning with number `shard`."""
        with gzip.open(Path(__file__).parent / "digits.csv.gz", "rt") as file:
            rows = [[float(value) for value in line.split(",")] for line in file]
        random.Random(0).shuffle(rows)
        rows = rows[:HELD_OUT] if split == "test" else rows[HELD_OUT:]
        table = torch.tensor(rows[shard::shards])
        return TensorDataset(table[:, :64] / 16, table[:, 64].long())

    def loss(self, model, batch):
        """How wrong the model is about a batch."""
        images, digits = batch
        return nn.functional.cross_entropy(model(images), digits)

    def optimizer(self, model):
        """A larger step than AdamW's default, because the job is short."""
        return torch.optim.AdamW(model.parameters(), lr=6e-3)

    def evaluate(self, model, dataset):
        """The share of digits that were read rightly."""
        images, digits = dataset.tensors
        answers = model(images)
        return {
            "accuracy": (answers.argmax(1) == digits).float().mean().item(),
            "loss": nn.functional.cross_entropy(answers, digits).item(),
        }
