"""The model's file as the client will write it from a state, put back into the model as its author will."""

from __future__ import annotations

import io

import safetensors.torch
from torch import nn

from axonp2p.errors import TaskMistake
from axonp2p.tensors.frozen import FrozenTensors
from axonp2p.training.state_transfer.checkpoint_file import Model
from axonp2p.training.state_transfer.model_file import write_weights
from axonp2p.training.state_transfer.model_layout import read_layout
from axonp2p.training.trainer.outer_optimizer import State
from axonp2p.training.trainer.task import Task


def why_not_loaded(task: Task, model: nn.Module, file_layout: bytes, state: State, frozen: FrozenTensors) -> str:
    """Why `load_state_dict`, strict about its keys, does not take the file; empty when it does.

    `file_layout` is packed, as a worker tells it. The model has the state's weights afterwards.
    """
    layout = read_layout(file_layout, Model(state.layout.parameters, state.layout.values, state.layout.frozen_bytes))
    file = io.BytesIO()
    write_weights(file, state.weights.numpy(), layout, frozen[0 : len(frozen)])
    try:
        with task.code("load_state_dict()"):
            model.load_state_dict(safetensors.torch.load(file.getvalue()))
    except TaskMistake as mistake:
        return " ".join(mistake.cause.split())
    return ""
