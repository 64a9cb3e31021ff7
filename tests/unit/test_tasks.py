"""Tasks of other libraries, from what those libraries ask of a model; the real ones are in test_libraries.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from axonp2p.tasks import from_lightning, from_transformers


class Answers(nn.Module):
    """Answers as Hugging Face models do."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(2, 2), nn.LayerNorm(2)

    def forward(self, inputs, labels=None):
        logits = self.norm(self.linear(inputs))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return SimpleNamespace(logits=logits, loss=loss)


def samples(split, shard, shards):
    return [{"inputs": torch.ones(2) * number, "labels": number % 2} for number in range(shard, 8, shards)]


def test_a_model_that_answers_with_its_loss_is_a_task():
    task = from_transformers(Answers, samples, learning_rate=0.1, weight_decay=0.5)()
    model = task.model()
    batch = task.collate(task.data("train", 0, 2))
    assert task.loss(model, batch).requires_grad
    decay = {len(group["params"]): group["weight_decay"] for group in task.optimizer(model).param_groups}
    assert decay == {1: 0.5, 3: 0.0}, "biases and norms are not decayed"


def test_its_rate_rises_then_falls_to_zero():
    task = from_transformers(Answers, samples, warmup=0.2)()
    assert [task.schedule(step, 10) for step in range(3)] == [0, 0.5, 1]
    assert [task.schedule(step, 10) for step in range(3, 10)] == [step / 8 for step in range(7, 0, -1)]
    assert from_transformers(Answers, samples)().schedule(0, 10) == 1


def test_a_collator_may_be_given():
    assert from_transformers(Answers, samples, collate=len)().collate([1, 2, 3]) == 3


@pytest.mark.parametrize(
    ("batch", "said"), [({"inputs": torch.ones(1, 2)}, "need the key 'labels'"), ([1], "samples must be dicts")]
)
def test_what_gives_no_loss_is_told(batch, said):
    task = from_transformers(Answers, samples)()
    with pytest.raises((ValueError, TypeError), match=said):
        task.loss(Answers(), batch)


class Lit(nn.Module):
    """What of a LightningModule is used."""

    automatic_optimization = True

    def __init__(self, configured=lambda model: optim.SGD(model.parameters(), 0.5)):
        super().__init__()
        self.linear, self.configured = nn.Linear(1, 1), configured

    def training_step(self, batch, batch_idx):
        return {"loss": self.linear(batch[0]).mean(), "other": 1}

    def validation_step(self, batch):
        self.log("size", len(batch[0]), prog_bar=True)
        self.log_dict({"one": torch.tensor(1.0)})

    def configure_optimizers(self):
        return self.configured(self)


class Data:
    """What of a LightningDataModule is used."""

    calls: list = []

    def prepare_data(self):
        self.calls.append("prepare")

    def setup(self, stage):
        self.calls.append(stage)

    def train_dataloader(self):
        return DataLoader(TensorDataset(torch.arange(10.0).view(10, 1)), batch_size=3, shuffle=True)

    def val_dataloader(self):
        return DataLoader([(torch.ones(1),)] * 130, collate_fn=lambda found: [torch.stack([one for (one,) in found])])


def test_a_lightning_module_is_a_task():
    task = from_lightning(Lit, datamodule=Data)()
    model = task.model()
    train = task.data("train", 1, 3)
    assert [sample[0].item() for sample in train.dataset] == [1.0, 4.0, 7.0]
    assert task.loss(model, [torch.ones(2, 1)]).requires_grad
    assert task.optimizer(model).param_groups[0]["lr"] == 0.5
    assert task.schedule(3, 10) == 1
    test = task.data("test", 0, 1)
    found = task.evaluate(model, test)
    assert found == {"size": (64 * 64 * 2 + 2 * 2) / 130, "one": 1.0}
    assert Data.calls == ["prepare", "fit"]


def test_without_a_validation_step_the_loss_is_measured():
    made = Lit()
    made.linear.weight.data.fill_(2.0)
    made.linear.bias.data.zero_()
    type(made).validation_step, own = Lit.training_step, Lit.validation_step
    try:
        task = from_lightning(lambda: made, data=samples)()
        assert task.evaluate(task.model(), [(torch.ones(1),)] * 3) == {"loss": 2.0}
    finally:
        type(made).validation_step = own


def falling(model, **said):
    optimizer = optim.SGD(model.parameters(), 0.5)
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": optim.lr_scheduler.StepLR(optimizer, 1, 0.1), **said}}


def warm(model):
    optimizer = optim.SGD(model.parameters(), 0.5)
    return [optimizer], [
        {"scheduler": optim.lr_scheduler.LambdaLR(optimizer, lambda step: step / 4), "interval": "step"}
    ]


@pytest.mark.parametrize(
    ("configured", "epoch_steps", "factors"),
    [
        (lambda model: falling(model, interval="step"), 0, [1, 0.1, 0.01, 0.001]),
        (lambda model: falling(model, interval="step", frequency=2), 0, [1, 1, 0.1, 0.1]),
        (falling, 3, [1, 1, 1, 0.1]),
        (warm, 0, [0, 0.25, 0.5, 0.75]),
    ],
)
def test_a_scheduler_is_a_function_of_the_steps_number(configured, epoch_steps, factors):
    task = from_lightning(lambda: Lit(configured), data=samples, epoch_steps=epoch_steps)()
    assert task.optimizer(task.model()).param_groups[0]["lr"] == 0.5
    assert task.schedule(3, 10) == pytest.approx(factors[3])
    assert [task.schedule(step, 10) for step in range(4)] == pytest.approx(factors)


def two_rates(model):
    groups = [{"params": [model.linear.weight]}, {"params": [model.linear.bias]}]
    optimizer = optim.SGD(groups, 0.5)
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, [lambda step: 1, lambda step: 2])
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def plateau(model):
    optimizer = optim.SGD(model.parameters(), 0.5)
    return {"optimizer": optimizer, "lr_scheduler": optim.lr_scheduler.ReduceLROnPlateau(optimizer)}


@pytest.mark.parametrize(
    ("configured", "said"),
    [
        (falling, "the scheduler counts epochs: from_lightning"),
        (plateau, "depends on a metric"),
        (two_rates, "all need one factor"),
        (lambda model: [optim.SGD(model.parameters(), 1)] * 2, "2 optimisers: write class Task with step"),
        (lambda model: None, "NoneType, which is no optimiser"),
    ],
)
def test_what_cannot_be_followed_is_told_by_name(configured, said):
    task = from_lightning(lambda: Lit(configured), data=samples)()
    with pytest.raises((ValueError, TypeError), match=said):
        task.optimizer(task.model())


def test_manual_optimisation_is_refused():
    made = Lit()
    made.automatic_optimization = False
    with pytest.raises(ValueError, match="write class Task with step"):
        from_lightning(lambda: made, data=samples)().model()


@pytest.mark.parametrize("given", [{}, {"data": samples, "datamodule": Data}])
def test_there_is_one_source_of_samples(given):
    with pytest.raises(TypeError, match=r"data=\.\.\. or datamodule"):
        from_lightning(Lit, **given)


def test_a_stream_in_a_data_module_is_refused():
    class Endless(IterableDataset):
        def __iter__(self):
            return iter([1])

    class Streams(Data):
        def train_dataloader(self):
            return DataLoader(Endless())

    with pytest.raises(TypeError, match="cannot be cut into shards"):
        from_lightning(Lit, datamodule=Streams)().data("train", 0, 2)
