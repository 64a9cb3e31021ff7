"""A script that trains a class of its own on peers, once for each learning rate: python two_moons.py --rates 0.3 0.03

Peers load this whole file. Whatever submits the job stands below `if __name__ == "__main__":`, so they do not run that.
"""

from __future__ import annotations

import argparse
import math

import torch
from torch import nn
from torch.utils.data import TensorDataset

SAMPLES = 1200


class TwoMoons:
    """Two half circles that reach into each other; a small network tells them apart."""

    def __init__(self, rate):
        # Peers make the object anew with what stands in it: numbers, text, and lists and dicts of these.
        self.rate = rate

    def model(self):
        return nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))

    def data(self, split, shard, shards):
        chance = torch.Generator().manual_seed(0 if split == "train" else 1)
        angles = math.pi * torch.rand(SAMPLES, generator=chance)
        moons = torch.arange(SAMPLES) % 2
        points = torch.stack([torch.cos(angles), torch.sin(angles)], dim=1)
        points = torch.where(moons[:, None] == 0, points, torch.tensor([1.0, 0.5]) - points)
        points = points + 0.1 * torch.randn(SAMPLES, 2, generator=chance)
        return TensorDataset(points[shard::shards], moons[shard::shards])

    def loss(self, model, batch):
        points, moons = batch
        return nn.functional.cross_entropy(model(points), moons)

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=self.rate, momentum=0.9)

    def evaluate(self, model, dataset):
        points, moons = dataset.tensors
        return {"accuracy": (model(points).argmax(dim=1) == moons).float().mean().item()}


def train(swarm, rate, rounds, peers):
    """One job, followed to its end; its held-out accuracy after the last round."""
    from axonp2p.events import RoundFinished

    need = {"min_peers": 1, "memory": "800 MB", "max_rtt": "1 s"}
    job = swarm.submit(TwoMoons(rate), peers=peers, rounds=rounds, name="two-moons", need=need, train={"batch": 64})
    accuracy = 0.0
    for event in job.events():
        if isinstance(event, RoundFinished):
            accuracy = event.metrics["accuracy"]
            print(f"rate {rate}, round {event.round + 1} of {event.rounds}: {accuracy:.3f}", flush=True)
    return accuracy


def main():
    import axonp2p

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tracker", action="append", default=[], help="as axon-tracker run prints it")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.3, 0.03, 0.003])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--peers", type=int, default=2)
    told = parser.parse_args()
    with axonp2p.Swarm(trackers=told.tracker) as swarm:
        found = {rate: train(swarm, rate, told.rounds, told.peers) for rate in told.rates}
    best = max(found, key=found.get)
    print(f"best: rate {best} with {found[best]:.3f}")


if __name__ == "__main__":
    main()
