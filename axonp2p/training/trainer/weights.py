"""Trained weights from a file into tensors: safetensors only, which cannot hold code."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

Weights = dict[str, torch.Tensor]


def load(path: Path) -> Weights:
    """The state dict in a model.safetensors, for `model.load_state_dict`."""
    weights: Weights = load_file(path)
    return weights
