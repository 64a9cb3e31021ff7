"""A network that reads upright digits learns to read digits on their side: by low-rank adapters, its weights frozen."""

import gzip
import random
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset

import axonp2p

HELD_OUT = 360
"""Images that nobody trains on: the same ones always."""
RANK = 4


class Task:
    """What Axon asks of a task; plain PyTorch but for one line."""

    def model(self):
        """The network of `make_base.py` with its weights, frozen, and an adapter beside each of its layers."""
        base = network()
        base.load_state_dict(axonp2p.load_weights("base.safetensors"))
        base.requires_grad_(False)  # such parameters travel once, as a part of the bundle, and are in no exchange
        return nn.Sequential(*(Adapted(layer) if isinstance(layer, nn.Linear) else layer for layer in base))

    def data(self, split, shard, shards):
        """Every `shards`-th image of the split, turned by a quarter, beginning with number `shard`."""
        images, digits = read(split)
        turned = images.view(-1, 8, 8).rot90(1, (1, 2)).flatten(1)
        return TensorDataset(turned[shard::shards], digits[shard::shards])

    def loss(self, model, batch):
        """How wrong the model is about a batch."""
        images, digits = batch
        return nn.functional.cross_entropy(model(images), digits)

    def optimizer(self, model):
        """For the adapters alone."""
        return torch.optim.AdamW((one for one in model.parameters() if one.requires_grad), lr=1e-2)

    def evaluate(self, model, dataset):
        """The share of turned digits that were read rightly."""
        images, digits = dataset.tensors
        return {"accuracy": (model(images).argmax(1) == digits).float().mean().item()}


class Adapted(nn.Module):
    """A frozen layer, and beside it two thin ones that train (Hu et al. 2021). At first they add nothing."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.down = nn.Linear(layer.in_features, RANK, bias=False)
        self.up = nn.Linear(RANK, layer.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, seen):
        """What the frozen layer sees in it, and what was learnt since."""
        return self.layer(seen) + self.up(self.down(seen))


def network():
    """64 pixels, two layers of 128 hidden units, 10 digits: 26,122 parameters."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


def read(split):
    """Images of a split, 64 pixels from 0 to 1 each, and the digits that they show."""
    with gzip.open(Path(__file__).parent / "digits.csv.gz", "rt") as file:
        rows = [[float(value) for value in line.split(",")] for line in file]
    random.Random(0).shuffle(rows)
    table = torch.tensor(rows[:HELD_OUT] if split == "test" else rows[HELD_OUT:])
    return table[:, :64] / 16, table[:, 64].long()
