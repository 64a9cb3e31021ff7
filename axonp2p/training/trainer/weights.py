"""Trained weights from a file, safetensors only, which cannot hold code; and into forms that other programs read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import safetensors
import torch
from safetensors.torch import load_file

from axonp2p.errors import SettingsError
from axonp2p.files import replacing

if TYPE_CHECKING:
    from axonp2p.training.trainer.task import CheckedTask

Weights = dict[str, torch.Tensor]


def load(path: Path) -> Weights:
    """The state dict in a model.safetensors, for `model.load_state_dict`."""
    weights: Weights = load_file(path)
    return weights


def load_weights(file: str | Path) -> Weights:
    """The state dict in a safetensors file, for `model.load_state_dict` in a task's `model()`.

    A relative name is that of a file next to the task's own. Raises `FileNotFoundError`, and `ValueError` for a file of
    another kind, as the author of a task is to read them.
    """
    # Code that a task calls raises no errors of Axon's own family: those would not be the task's mistakes.
    task = getattr(sys.modules.get("axon_task"), "__file__", None)
    path = (Path(task).parent if task else Path()) / file
    if not path.is_file():
        raise FileNotFoundError(f'{file} is not in the job\'s folder, or job.toml does not name it: data = ["{file}"]')
    try:
        return load(path)
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{file} is no safetensors file ({error}): safetensors.torch.save_file(model.state_dict(), name) writes one"
        ) from None


def save_plain(weights: Path, out: Path) -> int:
    """Write them as a state dict for `torch.load`; how many tensors it has.

    Raises `SettingsError` for a file that is none, `OSError` of the disk.
    """
    try:
        tensors = load(weights)
    except safetensors.SafetensorError as error:
        raise SettingsError(f"{weights} is no safetensors file: {error}", fix="axon fetch JOB -o OUT") from error
    with replacing(out) as file:
        torch.save(tensors, file)
    return len(tensors)


def save_pretrained(task: CheckedTask, weights: Path, out: Path) -> str:
    """Have the task's model write them into a folder, for `from_pretrained`; which module of it did, empty for itself.

    Raises `TaskMistake`, `SettingsError` where it cannot, or these are not its weights, `OSError` of the disk.
    """
    model = task.model()
    try:
        model.load_state_dict(load(weights))
    except RuntimeError as error:
        raise SettingsError(f"{weights} does not hold this task's weights: {error}", fix="axon export JOB") from error
    named = [(name, part) for name, part in model.named_modules() if callable(getattr(part, "save_pretrained", None))]
    if not named:
        raise SettingsError(
            f"the task's model, a {type(model).__name__}, has no save_pretrained, nor has any module of it",
            fix="--format torch writes its state dict",
        )
    name: str
    name, part = named[0]  # the outermost
    out.mkdir(parents=True, exist_ok=True)
    with task.code("save_pretrained()"):
        part.save_pretrained(out)
    return name
