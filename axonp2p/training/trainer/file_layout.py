"""The layout of a model's file, from the model: the client, which runs no task's code, writes the file by it.

And that file, put back into the model as its author will.
"""

from __future__ import annotations

import io

import safetensors.torch
import torch
from torch import nn

from axonp2p.errors import TaskMistake
from axonp2p.tensors import flat
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.tensors.frozen import FrozenTensors
from axonp2p.tensors.layout import Layout
from axonp2p.training.messages import Dtype, FileLayout, TensorInfo
from axonp2p.training.state_transfer.model_file import write_weights
from axonp2p.training.state_transfer.model_layout import pack_layout, read_layout
from axonp2p.training.trainer.outer_optimizer import State
from axonp2p.training.trainer.task import CheckedTask

_DTYPES: dict[torch.dtype, Dtype] = {
    torch.uint64: "U64",
    torch.int64: "I64",
    torch.float64: "F64",
    torch.complex64: "C64",
    torch.float32: "F32",
    torch.uint32: "U32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.uint16: "U16",
    torch.int16: "I16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def file_layout(model: nn.Module, layout: Layout) -> bytes:
    """The `FileLayout` of the model's state dict, as it travels. Raises `ValueError` for what no file can be made of.

    Tied tensors are in the file under each of their names.
    """
    tensors = [
        TensorInfo(
            name=name,
            dtype=_DTYPES[place.tensor.dtype],
            shape=list(place.tensor.shape),
            coding=place.coding,
            begin=place.begin,
            apart=place.apart,
        )
        for name, place in flat.places(model, layout).items()
    ]
    frozen_name = layout.bounds["frozen"].start if layout.name_values else 0
    told = FileLayout(tensors=tensors, frozen_name=frozen_name)
    return pack_layout(told, Model(layout.parameters, layout.values, layout.frozen_bytes))


def why_not_loaded(task: CheckedTask, model: nn.Module, file_layout: bytes, state: State, frozen: FrozenTensors) -> str:
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
