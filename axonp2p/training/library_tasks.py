"""Models of other libraries as a task: `axonp2p.tasks` gives them to authors.

Neither library is imported here: the task's own code does that, at peers that have it or get it by `[packages]`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, IterableDataset, Subset, default_collate

Data = Callable[[str, int, int], Any]
"""As `data` of a task: given the split ("train" or "test"), the shard's number and how many shards there are."""
_EVALUATED_AT_ONCE = 64
_NOT_DECAYED = ("bias", "norm", "ln_")


def from_transformers(
    model: Callable[[], nn.Module],
    data: Data,
    *,
    learning_rate: float = 5e-5,
    weight_decay: float = 0.0,
    warmup: float = 0.0,
    collate: Callable[[list[Any]], Any] | None = None,
) -> type:
    """A task for a Hugging Face model, or any whose answer to `model(**batch)` has a `loss`.

    `model` makes it: from a config, or by `from_pretrained` of a folder of the bundle. Samples are dicts, which
    `collate` makes batches of (a data collator; PyTorch's own if there is none). The optimiser is AdamW; its rate rises
    over the share `warmup` of the job's steps, then falls to 0 in a line, as that of `transformers.Trainer`.
    """
    collating = collate

    class Task:
        def model(self) -> nn.Module:
            return model()

        def data(self, split: str, shard: int, shards: int) -> Any:
            return data(split, shard, shards)

        def collate(self, samples: list[Any]) -> Any:
            return (collating or default_collate)(samples)

        def loss(self, model: nn.Module, batch: Any) -> Tensor:
            if not isinstance(batch, Mapping):
                raise TypeError(f"a batch is a {type(batch).__name__}: samples must be dicts of the model's arguments")
            loss: Tensor | None = getattr(model(**batch), "loss", None)
            if loss is None:
                raise ValueError("the model gave no loss: samples need the key 'labels'")
            return loss

        def optimizer(self, model: nn.Module) -> optim.Optimizer:
            trained = [(name, one) for name, one in model.named_parameters() if one.requires_grad]
            plain = [one for name, one in trained if any(part in name.lower() for part in _NOT_DECAYED)]
            decayed = [one for name, one in trained if not any(part in name.lower() for part in _NOT_DECAYED)]
            groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]
            return optim.AdamW([group for group in groups if group["params"]], lr=learning_rate)

        def schedule(self, step: int, steps: int) -> float:
            rising = round(warmup * steps)
            return step / rising if step < rising else (steps - step) / max(1, steps - rising)

    return Task


def from_lightning(
    module: Callable[[], nn.Module],
    data: Data | None = None,
    *,
    datamodule: Callable[[], Any] | None = None,
    epoch_steps: int = 0,
) -> type:
    """A task for a LightningModule: its `training_step`, `validation_step` and `configure_optimizers`.

    `module` makes it. Samples come from `data`, or from the train and val loaders of a LightningDataModule, each
    `shards`-th sample to a shard. A scheduler is followed as a function of the step's number; one that counts epochs
    needs `epoch_steps`, the steps that are to be an epoch. The values of `self.log` in `validation_step` are the
    metrics. Raises `TypeError` unless there is one of `data` and `datamodule`.
    """
    if (data is None) == (datamodule is None):
        raise TypeError("from_lightning() needs data=... or datamodule=..., and not both")

    class Task:
        def __init__(self) -> None:
            self._loaders = _Loaders(datamodule) if datamodule else None
            self._rates: _Rates | None = None

        def model(self) -> nn.Module:
            made: Any = module()
            if not getattr(made, "automatic_optimization", True):
                raise ValueError(
                    "automatic_optimization is False: write class Task with step(self, model, batch, optimizers)"
                )
            made.log, made.log_dict = _silent, _silent
            return made  # type: ignore[no-any-return]

        def data(self, split: str, shard: int, shards: int) -> Any:
            return self._loaders.shard(split, shard, shards) if self._loaders else data and data(split, shard, shards)

        def optimizer(self, model: Any) -> optim.Optimizer:
            optimizer, scheduler = _configured(model)
            self._rates = _Rates(model, epoch_steps) if scheduler is not None else None
            for group in optimizer.param_groups:
                group["lr"] = group.get("initial_lr", group["lr"])  # a scheduler has taken its first step already
            return optimizer

        def schedule(self, step: int, steps: int) -> float:
            return self._rates.factor(step) if self._rates else 1.0

        def loss(self, model: Any, batch: Any) -> Tensor:
            said = _call(model.training_step, batch)
            loss: Tensor = said["loss"] if isinstance(said, Mapping) else said
            return loss

        def evaluate(self, model: Any, dataset: Any) -> dict[str, float]:
            if isinstance(dataset, DataLoader):
                dataset = dataset.dataset
            collate = self._loaders.collate if self._loaders else default_collate
            return _validated(model, dataset, collate)

    return Task


class _Loaders:
    """The loaders of a LightningDataModule, taken apart."""

    def __init__(self, datamodule: Callable[[], Any]) -> None:
        self._make = datamodule
        self._made: Any = None
        self.collate: Callable[[list[Any]], Any] = default_collate

    def shard(self, split: str, shard: int, shards: int) -> Any:
        if self._made is None:
            self._made = self._make()
            self._made.prepare_data()
            self._made.setup("fit")
        loader = self._made.train_dataloader() if split == "train" else self._made.val_dataloader()
        if loader is None and split == "test":
            return None
        if not isinstance(loader, DataLoader):
            raise TypeError(f"the {split} data is a {type(loader).__name__}: one DataLoader is needed")
        if isinstance(loader.dataset, IterableDataset):
            raise TypeError("a stream cannot be cut into shards: write data=... instead of datamodule=...")
        self.collate = loader.collate_fn
        samples: Any = loader.dataset
        part = Subset(samples, range(shard, len(samples), shards))
        return DataLoader(part, collate_fn=loader.collate_fn) if split == "train" else part


class _Rates:
    """The learning rates that a scheduler gives at each step, found by having another one count from the start."""

    def __init__(self, model: Any, epoch_steps: int) -> None:
        self._optimizer, said = _configured(model)
        config = dict(said) if isinstance(said, Mapping) else {"scheduler": said}
        self._scheduler: Any = config["scheduler"]
        if isinstance(self._scheduler, optim.lr_scheduler.ReduceLROnPlateau):
            raise TypeError("ReduceLROnPlateau depends on a metric: its rate is not known from the step's number")
        self._every = int(config.get("frequency", 1))
        if config.get("interval", "epoch") == "epoch":
            if not epoch_steps:
                raise ValueError(
                    'the scheduler counts epochs: from_lightning(..., epoch_steps=100), or give "interval": "step"'
                )
            self._every *= epoch_steps
        self._first = [float(group["initial_lr"]) for group in self._optimizer.param_groups]
        self._known = [self._now()]

    def factor(self, step: int) -> float:
        while len(self._known) <= step // self._every:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that no optimiser takes a step between: this one never does
                self._scheduler.step()
            self._known.append(self._now())
        return self._known[step // self._every]

    def _now(self) -> float:
        pairs = zip(self._optimizer.param_groups, self._first, strict=True)
        factors = [group["lr"] / first if first else 1.0 for group, first in pairs]
        if max(factors) - min(factors) > 1e-6 * max(1.0, max(factors)):
            raise ValueError("the scheduler changes the rates of parameter groups differently; all need one factor")
        return float(factors[0])


def _configured(model: Any) -> tuple[optim.Optimizer, Any]:
    """The optimiser and the scheduler of `configure_optimizers`, in any of the forms that Lightning takes."""
    said = model.configure_optimizers()
    schedulers: Any = []
    if isinstance(said, tuple) and len(said) == 2 and isinstance(said[0], list | tuple):
        said, schedulers = said
    if isinstance(said, list | tuple):
        if len(said) != 1:
            raise ValueError(f"{len(said)} optimisers: write class Task with step(self, model, batch, optimizers)")
        said = said[0]
    if isinstance(said, Mapping):
        said, schedulers = said["optimizer"], [said["lr_scheduler"]] if "lr_scheduler" in said else []
    if not isinstance(said, optim.Optimizer):
        raise TypeError(f"configure_optimizers() gave a {type(said).__name__}, which is no optimiser")
    if len(schedulers) > 1:
        raise ValueError(f"{len(schedulers)} schedulers for one optimiser")
    return said, schedulers[0] if schedulers else None


def _validated(model: Any, dataset: Any, collate: Callable[[list[Any]], Any]) -> dict[str, float]:
    """The means of what `validation_step` logs, or of its loss; without one, of the training loss."""
    own = not type(model).validation_step.__module__.startswith(("lightning.", "pytorch_lightning."))
    step = model.validation_step if own else model.training_step
    sums: dict[str, float] = {}
    said: dict[str, Any] = {}

    def log(name: str, value: Any, *_: Any, **__: Any) -> None:
        said[name] = value

    def log_dict(values: Mapping[str, Any], *_: Any, **__: Any) -> None:
        said.update(values)

    model.log, model.log_dict = log, log_dict
    try:
        for begin in range(0, len(dataset), _EVALUATED_AT_ONCE):
            numbers = range(begin, min(begin + _EVALUATED_AT_ONCE, len(dataset)))
            said.clear()
            answer = _call(step, collate([dataset[number] for number in numbers]))
            if not said and answer is not None:
                said["loss"] = answer["loss"] if isinstance(answer, Mapping) else answer
            for name, value in said.items():
                number = value.item() if isinstance(value, Tensor) else float(value)
                sums[name] = sums.get(name, 0.0) + number * len(numbers)
    finally:
        model.log, model.log_dict = _silent, _silent
    return {name: total / len(dataset) for name, total in sums.items()}


def _call(step: Callable[..., Any], batch: Any) -> Any:
    """A step of the module; the number of the batch is only given where it is asked for."""
    return step(batch, 0) if "batch_idx" in inspect.signature(step).parameters else step(batch)


def _silent(*_: Any, **__: Any) -> None:
    """In place of `self.log`, which needs a Trainer."""
