"""Trained weights from a file into tensors: safetensors only, which cannot hold code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO

import safetensors
import torch
from safetensors.torch import load_file

Weights = dict[str, torch.Tensor]


def load(path: Path) -> Weights:
    """The state dict in a model.safetensors, for `model.load_state_dict`."""
    weights: Weights = load_file(path)
    return weights


def load_weights(file: str | Path) -> Weights:
    """The state dict in a safetensors file, for `model.load_state_dict` in a task's `model()`.

    A relative name is that of a file beside the task's own. Raises `FileNotFoundError`, and `ValueError` for a file of
    another kind, as the author of a task is to read them.
    """
    # What a task calls raises no errors of Axon's own family: those would not be the task's mistakes.
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


def write_pickled(weights: Weights, file: IO[bytes]) -> None:
    """Write a state dict of plain tensors as `torch.load` reads it, with `weights_only` too."""
    torch.save(weights, file)
