"""Tasks that hide state in every place that Python has for it, as their authors write them without meaning any harm.

`CHECKABLE`: what they keep changes no step, or is made anew the same way, so their steps can be done again. `HIDDEN`:
their steps depend on it. Those that are `SANDBOXED_` are for real peers only: they need what is different in a sandbox.
FILES stands for a path that they may write to.
"""

from __future__ import annotations

import textwrap

from torch import nn

HEAD = """
import functools, random
import numpy, torch
from torch import nn
from torch.utils.data import TensorDataset

def made():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

class Plain:
    def model(self):
        return made()
    def optimizer(self, model):
        return torch.optim.AdamW(model.parameters(), lr=0.005)
    def data(self, split, shard, shards):
        points = torch.randn(96, 3, generator=torch.Generator().manual_seed(7))[shard::shards]
        return TensorDataset(points, points.prod(1, keepdim=True) + points[:, :1])
    def loss(self, model, batch):
        return nn.functional.mse_loss(model(batch[0]), batch[1])

"""

_CHECKABLE = {
    "self.net": """
        class Task(Plain):
            def model(self):
                self.net = made()
                return self.net
            def loss(self, model, batch):
                return super().loss(self.net, batch)
    """,
    "a model in a global": """
        torch.manual_seed(3)
        NET = made()
        class Task(Plain):
            def model(self):
                return NET
            def loss(self, model, batch):
                return super().loss(NET, batch)
    """,
    "two optimisers": """
        class Task(Plain):
            def model(self):
                self.both = nn.ModuleDict({"one": made(), "two": made()})
                self.second = torch.optim.SGD(self.both["two"].parameters(), lr=0.01)
                return self.both
            def optimizer(self, model):
                return torch.optim.AdamW(model["one"].parameters(), lr=0.005)
            def loss(self, model, batch):
                if model.training:
                    self.second.zero_grad()
                    super().loss(self.both["two"], batch).backward()
                    self.second.step()
                return super().loss(self.both["one"], batch)
    """,
    "a wrapper kept from the first call": """
        class Task(Plain):
            wrapped = None
            def loss(self, model, batch):
                if self.wrapped is None:
                    self.wrapped = torch.func.functional_call
                    self.kept = model
                named = dict(self.kept.named_parameters())
                return nn.functional.mse_loss(self.wrapped(self.kept, named, (batch[0],)), batch[1])
    """,
    "a cached function": """
        @functools.cache
        def wrapper(model):
            return lambda points: model(points)
        class Task(Plain):
            def loss(self, model, batch):
                return super().loss(wrapper(model), batch)
    """,
    "a moving average of the weights": """
        class Task(Plain):
            def model(self):
                self.average = torch.optim.swa_utils.AveragedModel(made())
                return made()
            def loss(self, model, batch):
                self.average.update_parameters(model)
                return super().loss(model, batch)
    """,
    "a hook that counts": """
        calls = []
        class Task(Plain):
            def model(self):
                model = made()
                model.register_forward_hook(lambda *_: calls.append(1))
                return model
    """,
    "random generators that are seeded for all": """
        class Task(Plain):
            def loss(self, model, batch):
                noise = torch.rand(1) + random.random() + float(numpy.random.rand())
                return super().loss(model, batch) * (1 + noise.item())
    """,
}

_HIDDEN = {
    "an attribute": """
        class Task(Plain):
            calls = 0
            def loss(self, model, batch):
                self.calls += 1
                return super().loss(model, batch) * (1 + self.calls % 5)**2 * (1 if self.calls % 3 else -1)
    """,
    "a global": """
        calls = 0
        class Task(Plain):
            def loss(self, model, batch):
                global calls
                calls += 1
                return super().loss(model, batch) * (1 if calls % 3 else -1)
    """,
    "an attribute of a library": """
        torch.nn.calls = 0
        class Task(Plain):
            def loss(self, model, batch):
                nn.calls += 1
                return super().loss(model, batch) * (1 if nn.calls % 3 else -1)
    """,
    "a class of a library": """
        nn.Tanh.calls = 0
        class Task(Plain):
            def loss(self, model, batch):
                nn.Tanh.calls += 1
                return super().loss(model, batch) * (1 if nn.Tanh.calls % 3 else -1)
    """,
    "a cache": """
        @functools.cache
        def first(shape):
            return []
        class Task(Plain):
            def loss(self, model, batch):
                seen = first(batch[0].shape)
                seen.append(1)
                return super().loss(model, batch) * (1 if len(seen) % 3 else -1)
    """,
    "a closure": """
        def counting():
            calls = 0
            def sign():
                nonlocal calls
                calls += 1
                return 1 if calls % 3 else -1
            return sign
        class Task(Plain):
            def __init__(self):
                self.sign = counting()
            def loss(self, model, batch):
                return super().loss(model, batch) * self.sign()
    """,
    "a default argument": """
        class Task(Plain):
            def loss(self, model, batch, seen=[]):
                seen.append(1)
                return super().loss(model, batch) * (1 if len(seen) % 3 else -1)
    """,
    "a generator": """
        def signs():
            while True:
                yield from (1, 1, -1)
        class Task(Plain):
            signs = signs()
            def loss(self, model, batch):
                return super().loss(model, batch) * next(self.signs)
    """,
    "a hook": """
        calls = []
        def hook(module, arguments, output):
            calls.append(1)
            return output if len(calls) % 3 else -output
        class Task(Plain):
            def model(self):
                model = made()
                model.register_forward_hook(hook)
                return model
    """,
    "a hook for all modules": """
        calls = []
        def hook(module, arguments, output):
            calls.append(1)
            return output if len(calls) % 3 else -output
        class Task(Plain):
            def model(self):
                nn.modules.module.register_module_forward_hook(hook)
                return made()
    """,
    "a random generator of torch": """
        class Task(Plain):
            chance = torch.Generator().manual_seed(3)
            def loss(self, model, batch):
                return super().loss(model, batch) * torch.randn(1, generator=self.chance).item()
    """,
    "a random generator of Python": """
        class Task(Plain):
            chance = random.Random(3)
            def loss(self, model, batch):
                return super().loss(model, batch) * self.chance.gauss(0, 1)
    """,
    "a random generator of numpy": """
        class Task(Plain):
            chance = numpy.random.default_rng(3)
            def loss(self, model, batch):
                return super().loss(model, batch) * float(self.chance.normal())
    """,
    "an optimiser with momentum inside the loss": """
        class Task(Plain):
            def model(self):
                self.both = nn.ModuleDict({"one": made(), "two": made()})
                self.second = torch.optim.SGD(self.both["two"].parameters(), lr=0.05, momentum=0.99)
                return self.both
            def optimizer(self, model):
                return torch.optim.AdamW(model["one"].parameters(), lr=0.005)
            def loss(self, model, batch):
                if model.training:
                    self.second.zero_grad()
                    super().loss(self.both["two"], batch).backward()
                    self.second.step()
                return super().loss(self.both["one"], batch)
    """,
    "a moving average that the loss uses": """
        class Task(Plain):
            average = 0.0
            def loss(self, model, batch):
                loss = super().loss(model, batch)
                self.average = 0.9 * self.average + loss.item()
                return loss * (self.average - 4)
    """,
    "a dataset with a generator of its own": """
        class Noisy(torch.utils.data.Dataset):
            def __init__(self, points):
                self.points, self.chance = points, random.Random(5)
            def __len__(self):
                return len(self.points)
            def __getitem__(self, number):
                return self.points[number], torch.tensor([self.chance.gauss(0, 3)])
        class Task(Plain):
            def data(self, split, shard, shards):
                return Noisy(super().data(split, shard, shards).tensors[0])
    """,
    "a file": """
        import os
        PATH = "FILES" + str(os.urandom(4).hex())
        class Task(Plain):
            def loss(self, model, batch):
                with open(PATH, "a") as file:
                    file.write("x")
                calls = os.path.getsize(PATH)
                return super().loss(model, batch) * (1 if calls % 3 else -1)
    """,
}

_SANDBOXED_CHECKABLE = {
    "a compiled model": """
        class Task(Plain):
            compiled = None
            def loss(self, model, batch):
                if self.compiled is None:
                    self.compiled = torch.compile(model, backend="eager")
                return super().loss(self.compiled, batch)
    """,
    "a model compiled to machine code": """
        class Task(Plain):
            compiled = None
            def loss(self, model, batch):
                if self.compiled is None:
                    self.compiled = torch.compile(model)
                return super().loss(self.compiled, batch)
    """,
}

_SANDBOXED_HIDDEN = {
    "a compiled function that counts": """
        class Task(Plain):
            compiled = None
            calls = torch.zeros(1)
            def counted(self, loss):
                self.calls.add_(1)
                return loss * torch.where(self.calls % 3 == 0, -1.0, 1.0).mean()
            def loss(self, model, batch):
                if self.compiled is None:
                    self.compiled = torch.compile(self.counted, backend="eager")
                return self.compiled(super().loss(model, batch))
    """,
    "data read by processes": """
        from torch.utils.data import DataLoader
        class Task(Plain):
            def data(self, split, shard, shards):
                read = DataLoader(super().data(split, shard, shards), batch_size=1, num_workers=2)
                return TensorDataset(*(torch.cat(column) for column in zip(*read)))
    """,
    "processes that read each batch": """
        from torch.utils.data import DataLoader, Dataset
        class Read(Dataset):
            def __init__(self, inner):
                self.inner = inner
            def __len__(self):
                return len(self.inner)
            def __getitems__(self, numbers):
                read = DataLoader(torch.utils.data.Subset(self.inner, numbers), batch_size=1, num_workers=1)
                return [[column[0] for column in sample] for sample in read]
        class Task(Plain):
            def data(self, split, shard, shards):
                return Read(super().data(split, shard, shards))
    """,
}


def _task(body: str) -> str:
    return HEAD + textwrap.dedent(body)


CHECKABLE = {kind: _task(body) for kind, body in _CHECKABLE.items()}
HIDDEN = {kind: _task(body) for kind, body in _HIDDEN.items()}
TASKS = CHECKABLE | HIDDEN
SANDBOXED_CHECKABLE = {kind: _task(body) for kind, body in _SANDBOXED_CHECKABLE.items()}
SANDBOXED_HIDDEN = {kind: _task(body) for kind, body in _SANDBOXED_HIDDEN.items()}


def forget_hooks() -> None:
    """Those for all modules would outlive a job in the process of tests, as they do not outlive a worker."""
    nn.modules.module._global_forward_hooks.clear()
