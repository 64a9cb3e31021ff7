"""Which of two spirals is a point on? Replace it with your own model: Axon needs only `class Task`."""

import math

import torch
from torch import nn
from torch.utils.data import TensorDataset

import axonp2p


class Task:
    """The class that Axon calls on every peer. Plain PyTorch but for the optimiser; print() goes to the job's log."""

    def model(self):
        """A new model. All peers start from the same weights: the random seed is set before."""
        return nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))

    def data(self, split, shard, shards):
        """Part number `shard` out of `shards` of the "train" or the "test" data: any Dataset with a length.

        A file that job.toml lists under `data` is opened by its name: open("my-data.csv")
        """
        points, spirals = make_spirals(count=2000, seed=1 if split == "train" else 2)
        return TensorDataset(points[shard::shards], spirals[shard::shards])

    def loss(self, model, batch):
        """The loss of one batch, to be made smaller."""
        points, spirals = batch
        return nn.functional.cross_entropy(model(points), spirals)

    def optimizer(self, model):
        """Optional: AdamW with its defaults when you leave this out. This is Muon, which learns more from each step."""
        return axonp2p.muon(model, lr=2e-2)

    def evaluate(self, model, dataset):
        """Optional: numbers that tell how good the model is on "test" data. The mean loss when you leave this out."""
        points, spirals = dataset.tensors
        return {"accuracy": (model(points).argmax(1) == spirals).float().mean().item()}


def make_spirals(count, seed):
    """Points near two spirals that wind around each other, and the number of the spiral that each belongs to."""
    chance = torch.Generator().manual_seed(seed)
    spirals = torch.randint(2, (count,), generator=chance)
    turn = 3 * math.pi * torch.rand(count, generator=chance).sqrt()
    angle = turn + math.pi * spirals
    points = torch.stack((turn * angle.cos(), turn * angle.sin()), dim=1) / (3 * math.pi)
    return points + 0.02 * torch.randn(count, 2, generator=chance), spirals
