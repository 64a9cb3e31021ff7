"""Some sixty kinds of job, as people write them: what `class Task` must bear, or refuse by name.

A text is a whole task.py behind `HEAD`. `Points` is its usual data: eight numbers of which the class follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

HEAD = """
import math, os, random, sys
from pathlib import Path
import numpy
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, WeightedRandomSampler, default_collate

def points(split, shard, shards, count=960):
    drawn = torch.Generator().manual_seed(int(split == "test"))
    x = torch.randn(count, 8, generator=drawn)
    y = (x[:, 0] + x[:, 1] * 0.7 - x[:, 2] > 0).long() + 2 * (x[:, 3] + x[:, 4] > 0).long()
    return x[shard::shards], y[shard::shards]

def net(width=32):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 4))

class Points:
    def model(self):
        return net()
    def data(self, split, shard, shards):
        return TensorDataset(*points(split, shard, shards))
    def optimizer(self, model):
        return optim.AdamW(model.parameters(), lr=0.01)
    def loss(self, model, batch):
        return F.cross_entropy(model(batch[0]), batch[1])

def images(split, shard, shards):
    x, y = points(split, shard, shards, 480)
    return TensorDataset(x.view(-1, 1, 2, 4).repeat_interleave(4, 2).repeat_interleave(2, 3), y)

def texts(split, shard, shards, length=24):
    alphabet = "the quick brown fox jumps over the lazy dog " * 40
    codes = torch.tensor([ord(letter) % 32 for letter in alphabet])
    windows = codes.unfold(0, length, 3)[shard::shards]
    return windows[:400] if split == "train" else windows[:40]
"""


@dataclass(frozen=True)
class WrittenJob:
    """One kind."""

    name: str
    text: str
    refused: str = ""
    """What the author is told; empty: it works."""
    unchecked: str = ""
    """Why its steps cannot be done again; empty: they can."""
    metric: str = "loss"
    """By which it is compared with a plain process; less is better but for accuracy."""
    files: tuple[tuple[str, str], ...] = ()
    """Others of its bundle, and what is in them."""
    train: tuple[tuple[str, Any], ...] = ()
    """Keys of `[train]` that it needs."""


def _job(name: str, text: str, **more: Any) -> WrittenJob:
    return WrittenJob(name, text.strip("\n") + "\n", **more)


ELSEWHERE = "done again, lead elsewhere"

# fmt: off
VISION = [
    _job("cnn-batchnorm-augmented", """
class Task(Points):
    def model(self):
        body = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(4)
        return nn.Sequential(*body, nn.Flatten(), nn.Linear(128, 4))
    def data(self, split, shard, shards):
        found = images(split, shard, shards)
        if split == "test":
            return found
        class Noisy(Dataset):
            def __len__(self): return len(found)
            def __getitem__(self, number):
                x, y = found[number]
                return x + 0.1 * torch.randn_like(x), y
        return Noisy()
    def evaluate(self, model, dataset):
        x, y = dataset.tensors
        return {"accuracy": (model(x).argmax(1) == y).float().mean().item()}
""", metric="accuracy"),
    _job("vit", """
class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.cut, self.place = nn.Conv2d(1, 16, 4, 4), nn.Parameter(torch.zeros(4, 16))
        self.blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, 0.1, batch_first=True), 2)
        self.head = nn.Linear(16, 4)
    def forward(self, x):
        return self.head(self.blocks(self.cut(x).flatten(2).transpose(1, 2) + self.place).mean(1))
class Task(Points):
    def model(self): return Patches()
    def data(self, split, shard, shards): return images(split, shard, shards)
"""),
    _job("autoencoder", """
class Task(Points):
    def model(self): return nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 8))
    def loss(self, model, batch): return F.mse_loss(model(batch[0]), batch[0])
"""),
    _job("vae", """
class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, 8), nn.Linear(4, 8)
    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, 1)
        code = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.decoder(code), -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1).mean()
class Task(Points):
    def model(self): return Vae()
    def loss(self, model, batch):
        made, divergence = model(batch[0])
        return F.mse_loss(made, batch[0]) + 0.01 * divergence
"""),
    _job("diffusion", """
class Task(Points):
    def model(self): return nn.Sequential(nn.Linear(9, 64), nn.SiLU(), nn.Linear(64, 8))
    def loss(self, model, batch):
        x, time = batch[0], torch.rand(len(batch[0]), 1)
        noise = torch.randn_like(x)
        return F.mse_loss(model(torch.cat([x * (1 - time) + noise * time, time], 1)), noise)
"""),
    _job("distillation-frozen-teacher", """
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher, self.student = net(64).requires_grad_(False), net(16)
    def forward(self, x): return self.student(x)
class Task(Points):
    def model(self): return Pair()
    def optimizer(self, model): return optim.Adam(model.student.parameters(), lr=0.01)
    def loss(self, model, batch):
        return F.mse_loss(model(batch[0]), model.teacher(batch[0]))
"""),
    _job("contrastive-pairs", """
class Task(Points):
    def loss(self, model, batch):
        x = batch[0]
        one, other = (F.normalize(model(x + 0.1 * torch.randn_like(x)), dim=1) for _ in range(2))
        return F.cross_entropy(one @ other.T / 0.5, torch.arange(len(x)))
"""),
]

TEXT = [
    _job("gpt", """
class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters, self.places = nn.Embedding(32, 32), nn.Embedding(32, 32)
        self.blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 2, 64, 0.0, batch_first=True), 2)
        self.head = nn.Linear(32, 32, bias=False)
        self.head.weight = self.letters.weight
    def forward(self, codes):
        hidden = self.letters(codes) + self.places(torch.arange(codes.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(codes.shape[1])
        return self.head(self.blocks(hidden, mask=mask, is_causal=True))
class Task(Points):
    def model(self): return Gpt()
    def data(self, split, shard, shards): return TensorDataset(texts(split, shard, shards))
    def loss(self, model, batch):
        return F.cross_entropy(model(batch[0][:, :-1]).flatten(0, 1), batch[0][:, 1:].flatten())
    def schedule(self, step, steps): return min(1, (step + 1) / 10) * 0.5 * (1 + math.cos(math.pi * step / steps))
"""),
    _job("lstm-packed", """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters, self.lstm, self.head = nn.Embedding(32, 8), nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 4)
    def forward(self, packed):
        _, (last, _) = self.lstm(nn.utils.rnn.PackedSequence(self.letters(packed.data), packed.batch_sizes))
        return self.head(last[-1])
class Task(Points):
    def model(self): return Reader()
    def data(self, split, shard, shards):
        codes = texts(split, shard, shards)
        return [(row[: 3 + number % 9], int(row[0]) % 4) for number, row in enumerate(codes)]
    def collate(self, samples):
        samples.sort(key=lambda sample: -len(sample[0]))
        return nn.utils.rnn.pack_sequence([row for row, _ in samples]), torch.tensor([y for _, y in samples])
"""),
    _job("lengths-without-collate", """
class Task(Points):
    def data(self, split, shard, shards): return [torch.zeros(3 + number % 5) for number in range(20)]
""", refused="class Task may have its own collate(self, samples)"),
    _job("dict-batches-with-strings", """
class Task(Points):
    def data(self, split, shard, shards):
        x, y = points(split, shard, shards)
        return [{"x": row, "y": label, "name": f"row {number}"} for number, (row, label) in enumerate(zip(x, y))]
    def loss(self, model, batch):
        assert isinstance(batch["name"][0], str)
        return F.cross_entropy(model(batch["x"]), batch["y"])
"""),
    _job("ready-batches-by-getitems", """
class Ready(Dataset):
    def __init__(self, x, y): self.x, self.y = x, y
    def __len__(self): return len(self.x)
    def __getitem__(self, number): return self.x[number], self.y[number]
    def __getitems__(self, numbers): return [self[number] for number in numbers]
class Task(Points):
    def data(self, split, shard, shards): return Ready(*points(split, shard, shards))
"""),
    _job("data-loader", """
class Task(Points):
    def data(self, split, shard, shards):
        return DataLoader(TensorDataset(*points(split, shard, shards)), batch_size=4, shuffle=True, num_workers=2)
"""),
    _job("test-data-in-a-loader", """
class Task(Points):
    def data(self, split, shard, shards):
        data = TensorDataset(*points(split, shard, shards))
        return data if split == "train" else DataLoader(data, batch_size=64)
    def evaluate(self, model, data):
        seen = [(model(x).argmax(1) == y).float() for x, y in data]
        return {"accuracy": torch.cat(seen).mean()}
""", metric="accuracy"),
    _job("stream-that-ends", """
class Lines(IterableDataset):
    def __init__(self, shard, shards, split): self.found = points(split, shard, shards)
    def __iter__(self):
        order = list(range(len(self.found[0])))
        random.shuffle(order)
        for number in order: yield self.found[0][number], self.found[1][number]
class Task(Points):
    def data(self, split, shard, shards): return Lines(shard, shards, split)
"""),
    _job("stream-without-end", """
class Endless(IterableDataset):
    def __iter__(self):
        while True:
            x = torch.randn(8)
            yield x, (x[0] > 0).long()
class Task(Points):
    def data(self, split, shard, shards):
        return Endless() if split == "train" else None
"""),
    _job("weighted-sampler", """
class Task(Points):
    def sampler(self, dataset, epoch):
        return WeightedRandomSampler(1.0 / torch.bincount(dataset.tensors[1])[dataset.tensors[1]], len(dataset))
"""),
    _job("ctc", """
class Task(Points):
    def model(self): return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 6 * 5), nn.Unflatten(1, (6, 5)))
    def loss(self, model, batch):
        log_odds = model(batch[0]).log_softmax(2).transpose(0, 1)
        count = len(batch[0])
        return F.ctc_loss(log_odds, batch[1].view(-1, 1) + 1, torch.full((count,), 6), torch.full((count,), 1))
"""),
]

LOOPS = [
    _job("schedule-returned", """
class Task(Points):
    def optimizer(self, model):
        made = optim.SGD(model.parameters(), lr=0.1)
        return made, optim.lr_scheduler.StepLR(made, 10)
""", refused="A schedule is a method of its own, schedule(self, step, steps)"),
    _job("schedule-by-hook", """
class Task(Points):
    def optimizer(self, model):
        made = optim.AdamW(model.parameters(), lr=0.01)
        falling = optim.lr_scheduler.StepLR(made, 30)
        made.register_step_post_hook(lambda *_: falling.step())
        return made
""", unchecked="changes its own settings"),
    _job("warm-up-and-cosine", """
class Task(Points):
    def schedule(self, step, steps): return min(1, (step + 1) / 20) * 0.5 * (1 + math.cos(math.pi * step / steps))
"""),
    _job("gan-with-step", """
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.maker = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 8))
        self.critic = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
class Task(Points):
    def model(self): return Pair()
    def optimizer(self, model):
        return [optim.Adam(part.parameters(), 0.005) for part in (model.maker, model.critic)]
    def step(self, model, batch, optimizers):
        maker, critic = optimizers
        true = batch[0] * 0.5 + 2
        made = model.maker(torch.randn(len(true), 4))
        critic.zero_grad()
        (F.softplus(-model.critic(true)).mean() + F.softplus(model.critic(made.detach())).mean()).backward()
        critic.step()
        maker.zero_grad()
        loss = F.softplus(-model.critic(made)).mean()
        loss.backward()
        maker.step()
        return loss
    def evaluate(self, model, dataset):
        return {"distance": (model.maker(torch.randn(500, 4)).mean(0) - 2).norm().item()}
""", metric="distance"),
    _job("several-optimisers-without-step", """
class Task(Points):
    def optimizer(self, model): return [optim.Adam(part.parameters(), 0.01) for part in (model[0], model[2])]
"""),
    _job("two-optimisers-of-one-parameter", """
class Task(Points):
    def optimizer(self, model): return [optim.Adam(model.parameters()), optim.SGD(model[2].parameters(), 0.1)]
""", refused="class Task then needs step(self, model, batch, optimizers)"),
    _job("muon", """
import axonp2p
class Task(Points):
    def optimizer(self, model): return axonp2p.muon(model, lr=0.02)
"""),
    _job("second-optimiser-hidden-in-loss", """
class Task(Points):
    def model(self):
        made = nn.ModuleList([net(), nn.Linear(4, 4)])
        self.other = optim.Adam(made[1].parameters(), 0.01)
        return made
    def optimizer(self, model): return optim.Adam(model[0].parameters(), 0.01)
    def loss(self, model, batch):
        answer = model[0](batch[0])
        if torch.is_grad_enabled():
            self.other.zero_grad()
            F.cross_entropy(model[1](answer.detach()), batch[1]).backward()
            self.other.step()
        return F.cross_entropy(answer, batch[1])
""", unchecked=ELSEWHERE),
    _job("gradient-reversal", """
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(context, x): return x.view_as(x)
    @staticmethod
    def backward(context, gradient): return -0.1 * gradient
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.domain = nn.Linear(8, 32), nn.Linear(32, 4), nn.Linear(32, 2)
class Task(Points):
    def model(self): return Two()
    def loss(self, model, batch):
        hidden = model.body(batch[0]).relu()
        domain = F.cross_entropy(model.domain(Reverse.apply(hidden)), (batch[0][:, 7] > 0).long())
        return F.cross_entropy(model.head(hidden), batch[1]) + 0.1 * domain
"""),
    _job("lbfgs-with-closure", """
class Task(Points):
    def optimizer(self, model): return optim.LBFGS(model.parameters(), lr=0.05, max_iter=4, history_size=4)
    def step(self, model, batch, optimizers):
        def closure():
            optimizers[0].zero_grad()
            squares = sum(one.square().sum() for one in model.parameters())
            loss = F.cross_entropy(model(batch[0]), batch[1]) + 1e-2 * squares
            loss.backward()
            return loss
        return optimizers[0].step(closure)
""", unchecked="the optimiser remembers"),
    _job("lbfgs-without-closure", """
class Task(Points):
    def optimizer(self, model): return optim.LBFGS(model.parameters())
""", refused="closure"),
    _job("own-optimiser", """
class Signs(optim.Optimizer):
    def __init__(self, parameters, lr): super().__init__(parameters, {"lr": lr})
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                remembered = self.state[parameter].setdefault("mean", torch.zeros_like(parameter))
                remembered.lerp_(parameter.grad, 0.1)
                parameter.sub_(group["lr"] * remembered.sign())
class Task(Points):
    def optimizer(self, model): return Signs(model.parameters(), 0.005)
"""),
    _job("own-optimiser-without-groups", """
class Both(optim.Optimizer):
    def __init__(self, *each): self.each = each
    def step(self): [one.step() for one in self.each]
    def zero_grad(self): [one.zero_grad() for one in self.each]
    def state_dict(self): return {}
class Task(Points):
    def optimizer(self, model): return Both(optim.SGD(model.parameters(), 0.1))
""", refused="param_groups"),
    _job("rates-by-group", """
class Task(Points):
    def optimizer(self, model):
        groups = [{"params": model[0].parameters(), "lr": 0.02}, {"params": model[2].parameters()}]
        return optim.SGD(groups, lr=0.2, momentum=0.9, nesterov=True)
"""),
    _job("accumulation-by-key", "class Task(Points): pass", train=(("micro_batch", 4),)),
    _job("clipped", "class Task(Points): pass", train=(("clip_gradients", 0.5),)),
    _job("ema-in-a-submodule", """
class Averaged(nn.Module):
    def __init__(self):
        super().__init__()
        self.now = net()
        self.mean = optim.swa_utils.AveragedModel(self.now, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.9))
    def forward(self, x): return self.now(x) if self.training else self.mean(x)
class Task(Points):
    def model(self): return Averaged()
    def optimizer(self, model): return optim.AdamW(model.now.parameters(), lr=0.01)
    def step(self, model, batch, optimizers):
        loss = self.loss(model, batch)
        optimizers[0].zero_grad(); loss.backward(); optimizers[0].step()
        model.mean.update_parameters(model.now)
        return loss
"""),
    _job("mixup-and-smoothing", """
class Task(Points):
    def loss(self, model, batch):
        x, y = batch
        if not model.training: return F.cross_entropy(model(x), y)
        share, other = numpy.random.beta(0.4, 0.4), torch.randperm(len(x))
        answer = model(share * x + (1 - share) * x[other])
        one, two = (F.cross_entropy(answer, labels, label_smoothing=0.05) for labels in (y, y[other]))
        return share * one + (1 - share) * two
"""),
    _job("model-kept-in-self", """
class Task(Points):
    def model(self):
        self.net = net()
        return self.net
    def loss(self, model, batch): return F.cross_entropy(self.net(batch[0]), batch[1])
"""),
    _job("counter-in-self", """
class Task(Points):
    steps = 0
    def loss(self, model, batch):
        self.steps += 1
        return F.cross_entropy(model(batch[0]), batch[1]) * (1 + 1 / self.steps)
""", unchecked=ELSEWHERE),
    _job("dqn-with-target-buffer", """
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.value = net()
        for name, parameter in self.value.named_parameters():
            self.register_buffer("target_" + name.replace(".", "_"), parameter.detach().clone())
    def target(self, x):
        held = {name: getattr(self, "target_" + name.replace(".", "_")) for name, _ in self.value.named_parameters()}
        return torch.func.functional_call(self.value, held, (x,))
class Task(Points):
    def model(self): return Agent()
    def loss(self, model, batch):
        x, y = batch
        with torch.no_grad():
            wanted = (y == 1).float() + 0.5 * model.target(x.roll(1, 0)).max(1).values
            if model.training:
                for name, parameter in model.value.named_parameters():
                    getattr(model, "target_" + name.replace(".", "_")).lerp_(parameter, 0.05)
        return F.smooth_l1_loss(model.value(x).gather(1, y.view(-1, 1))[:, 0], wanted)
"""),
    _job("reinforce", """
class Task(Points):
    def loss(self, model, batch):
        x, y = batch
        chosen = torch.distributions.Categorical(logits=model(x))
        if not model.training: return F.cross_entropy(model(x), y)
        action = chosen.sample()
        reward = (action == y).float()
        return -(chosen.log_prob(action) * (reward - reward.mean())).mean()
"""),
    _job("second-derivatives", """
class Task(Points):
    def model(self): return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
    def loss(self, model, batch):
        with torch.enable_grad():
            x = batch[0][:, :1].detach().requires_grad_()
            slope, = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return F.mse_loss(slope, x.cos()) + model(torch.zeros(1, 1)).square().mean()
"""),
    _job("maml", """
class Task(Points):
    def loss(self, model, batch):
        x, y = batch
        half = len(x) // 2
        held = dict(model.named_parameters())
        with torch.enable_grad():
            inner = F.cross_entropy(torch.func.functional_call(model, held, (x[:half],)), y[:half])
            moved = torch.autograd.grad(inner, list(held.values()), create_graph=True)
        fast = {name: value - 0.1 * slope for (name, value), slope in zip(held.items(), moved)}
        return F.cross_entropy(torch.func.functional_call(model, fast, (x[half:],)), y[half:])
"""),
]

NUMBERS = [
    _job("autocast-in-loss", """
class Task(Points):
    def loss(self, model, batch):
        with torch.autocast("cpu", torch.bfloat16): answer = model(batch[0])
        return F.cross_entropy(answer.float(), batch[1])
"""),
    _job("autocast-bf16", "class Task(Points): pass", train=(("autocast", "bf16"),)),
    _job("autocast-fp16", "class Task(Points): pass", train=(("autocast", "fp16"),)),
    _job("own-scaler", """
class Task(Points):
    def __init__(self): self.scaler = torch.amp.GradScaler("cpu", growth_interval=3)
    def step(self, model, batch, optimizers):
        optimizers[0].zero_grad()
        with torch.autocast("cpu", torch.float16): loss = F.cross_entropy(model(batch[0]), batch[1])
        self.scaler.scale(loss).backward()
        self.scaler.step(optimizers[0])
        self.scaler.update()
        return loss
""", unchecked=ELSEWHERE),
    _job("bf16-parameters", """
class Task(Points):
    def model(self): return net().bfloat16()
    def loss(self, model, batch): return F.cross_entropy(model(batch[0].bfloat16()).float(), batch[1])
"""),
    _job("float64-parameters", """
class Task(Points):
    def model(self): return net().double()
    def loss(self, model, batch): return F.cross_entropy(model(batch[0].double()), batch[1])
"""),
    _job("complex-parameters", """
class Fourier(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.head = nn.Parameter(torch.randn(5, dtype=torch.complex64)), nn.Linear(8, 4)
        self.register_buffer("turns", torch.polar(torch.ones(5), torch.arange(5.0)))
    def forward(self, x): return self.head(torch.fft.irfft(torch.fft.rfft(x) * self.weight * self.turns, n=8))
class Task(Points):
    def model(self): return Fourier()
"""),
    _job("tied-and-whole-numbers", """
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 8)
        self.other = self.one
        self.head = nn.Linear(8, 4)
        self.register_buffer("seen", torch.tensor(2**40 + 1))
    def forward(self, x):
        return self.head(self.other(self.one(x).relu()))
class Task(Points):
    def model(self): return Tied()
"""),
    _job("weight-and-spectral-norm", """
class Task(Points):
    def model(self):
        norms = nn.utils.parametrizations
        return nn.Sequential(norms.weight_norm(nn.Linear(8, 32)), nn.ReLU(), norms.spectral_norm(nn.Linear(32, 4)))
"""),
    _job("checkpointed-activations", """
class Task(Points):
    def loss(self, model, batch):
        from torch.utils.checkpoint import checkpoint
        return F.cross_entropy(checkpoint(model, batch[0], use_reentrant=False), batch[1])
"""),
    _job("vmapped-ensemble", """
class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(5, 4, 8) * 0.3), nn.Parameter(torch.zeros(5, 4))
    def forward(self, x): return torch.vmap(lambda weight, bias: F.linear(x, weight, bias))(self.weight, self.bias)
class Task(Points):
    def model(self): return Ensemble()
    def loss(self, model, batch): return F.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].repeat(5))
"""),
    _job("compiled", """
class Task(Points):
    def model(self): return torch.compile(net())
"""),
    _job("sparse-adam", """
class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.EmbeddingBag(64, 4, sparse=True, mode="mean")
    def forward(self, x): return self.rows(((x + 4) * 8).long().clamp(0, 63))
class Task(Points):
    def model(self): return Bag()
    def optimizer(self, model): return optim.SparseAdam(model.parameters(), lr=0.05)
"""),
    _job("sparse-and-dense", """
class Task(Points):
    def model(self): return nn.EmbeddingBag(64, 4, sparse=True)
    def loss(self, model, batch): return F.cross_entropy(model(((batch[0] + 4) * 8).long().clamp(0, 63)), batch[1])
""", refused="sparse"),
    _job("adagrad", """
class Task(Points):
    def optimizer(self, model): return optim.Adagrad(model.parameters(), lr=0.05)
"""),
    _job("lora", """
class Lora(nn.Module):
    def __init__(self, plain):
        super().__init__()
        self.plain = plain.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(2, plain.in_features) * 0.1)
        self.up = nn.Parameter(torch.zeros(plain.out_features, 2))
    def forward(self, x): return self.plain(x) + x @ self.down.T @ self.up.T
class Task(Points):
    def model(self): return nn.Sequential(Lora(nn.Linear(8, 64)), nn.ReLU(), Lora(nn.Linear(64, 4)))
    def optimizer(self, model): return optim.AdamW((one for one in model.parameters() if one.requires_grad), lr=0.02)
"""),
]

MISTAKES = [
    _job("lazy-module", """
class Task(Points):
    def model(self): return nn.Sequential(nn.LazyLinear(16), nn.ReLU(), nn.LazyLinear(4))
""", refused="run one batch through lazy modules in model()"),
    _job("layer-added-in-loss", """
class Task(Points):
    def loss(self, model, batch):
        if len(model) == 3: model.append(nn.Linear(4, 4))
        return F.cross_entropy(model(batch[0]), batch[1])
""", refused="have changed in number or size"),
    _job("no-module", """
class Task(Points):
    def model(self): return [1, 2]
""", refused="it must return a torch.nn.Module"),
    _job("card", """
class Task(Points):
    def model(self): return net().to("cuda")
""", refused="CUDA"),
    _job("loss-as-number", """
class Task(Points):
    def loss(self, model, batch): return F.cross_entropy(model(batch[0]), batch[1]).item()
""", refused="it must return a tensor with one number"),
    _job("infinite-loss", """
class Task(Points):
    def optimizer(self, model): return optim.SGD(model.parameters(), lr=1e30)
""", refused="became"),
    _job("helper-that-is-not-there", """
import my_layers
class Task(Points): pass
""", refused="No module named 'my_layers'"),
    _job("exit-in-loss", """
class Task(Points):
    def loss(self, model, batch): sys.exit(3)
""", refused="A task must not end the program that runs it"),
    _job("generator-as-data", """
class Task(Points):
    def data(self, split, shard, shards): return (row for row in points(split, shard, shards)[0])
""", refused="begins again"),
    _job("empty-shards", """
class Task(Points):
    def data(self, split, shard, shards): return []
""", refused="there are no samples in it"),
    _job("file-beside-it", """
class Task(Points):
    def data(self, split, shard, shards):
        lines = (Path(__file__).parent / "rows.csv").read_text().split()
        rows = [[float(number) for number in line.split(",")] for line in lines]
        return [(torch.tensor(row[:8]), int(row[8])) for row in rows][shard::shards]
""", files=(("rows.csv", "".join(f"{(-1) ** n},{n % 3},0,1,0,1,0,1,{n % 2}\n" for n in range(96))),)),
    _job("numpy-arrays", """
class Task(Points):
    def data(self, split, shard, shards):
        x, y = (part.numpy() for part in points(split, shard, shards))
        return [(row, label) for row, label in zip(x, y)]
"""),
]

# fmt: on
WRITTEN_JOBS = [*VISION, *TEXT, *LOOPS, *NUMBERS, *MISTAKES]
