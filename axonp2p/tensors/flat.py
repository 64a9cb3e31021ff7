"""A model as one flat float32 vector: parameters first, then float buffers, then integer buffers as floats.

Members exchange this vector. Parameters take the outer step, buffers (such as BatchNorm's statistics) a plain mean,
so the three sections stay apart. Tied parameters stand in it once; buffers that are not in the state dict are left
out, because the model's code makes them again.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy


@dataclass(frozen=True)
class Layout:
    """How many values each section has, and how many elements each tensor has, in the order of the vector."""

    parameters: int
    float_buffers: int
    integer_buffers: int
    lengths: tuple[int, ...]

    @property
    def values(self) -> int:
        """The length of the whole vector."""
        return self.parameters + self.float_buffers + self.integer_buffers


def layout_of(model: nn.Module) -> Layout:
    """The layout of a model's vector. Raises `ValueError` for tensors that a float32 vector cannot hold."""
    sections = _sections(model)
    sizes = [sum(tensor.numel() for tensor in section) for section in sections]
    lengths = tuple(tensor.numel() for section in sections for tensor in section)
    return Layout(sizes[0], sizes[1], sizes[2], lengths)


def read(model: nn.Module, layout: Layout) -> Tensor:
    """A new vector with the model's values. Raises `ValueError` when the model has changed its shape."""
    with torch.no_grad():
        return torch.cat([tensor.reshape(-1).to(torch.float32) for tensor in _tensors(model, layout)])


def write(vector: Tensor, model: nn.Module, layout: Layout) -> None:
    """Put a vector's values into the model. Raises `ValueError` when the model has changed its shape."""
    with torch.no_grad():
        chunks = torch.split(vector, list(layout.lengths))
        for tensor, chunk in zip(_tensors(model, layout), chunks, strict=True):
            whole = chunk if tensor.is_floating_point() else chunk.round()
            tensor.copy_(whole.view(tensor.shape))


def parameters(vector: Tensor, model: nn.Module, layout: Layout) -> list[tuple[nn.Parameter, Tensor]]:
    """The model's parameters, each with its piece of the vector. Raises `ValueError` when the model has changed."""
    _tensors(model, layout)
    found = list(model.parameters())
    pieces = torch.split(vector[: layout.parameters], [parameter.numel() for parameter in found])
    return [(parameter, piece.view(parameter.shape)) for parameter, piece in zip(found, pieces, strict=True)]


def places(model: nn.Module) -> dict[str, int]:
    """Where in the vector each tensor of the model's state dict begins; those that are not in it are left out.

    Raises `ValueError` for a model whose state dict does not hold its tensors as they are.
    """
    at, begins = 0, {}
    for tensor in (tensor for section in _sections(model) for tensor in section):
        begins[id(tensor)] = at
        at += tensor.numel()
    saved = model.state_dict(keep_vars=True)
    found = {name: begins[id(tensor)] for name, tensor in saved.items() if id(tensor) in begins}
    if len(set(found.values())) < len(set(begins.values())) and at:
        raise ValueError("state_dict() has other tensors than the model: what comes home could not be compared")
    return found


def _tensors(model: nn.Module, layout: Layout) -> list[Tensor]:
    tensors = [tensor for section in _sections(model) for tensor in section]
    if tuple(tensor.numel() for tensor in tensors) != layout.lengths:
        raise ValueError("the model's parameters or buffers have changed in number or size since model() built it")
    return tensors


def _sections(model: nn.Module) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    parameters: list[Tensor] = []
    for name, parameter in model.named_parameters():
        if is_lazy(parameter):
            raise ValueError(f"{name} has no size yet: run one batch through lazy modules in model()")
        if not parameter.is_floating_point():
            raise ValueError(f"{name} holds {parameter.dtype}: parameters must be real floating point numbers")
        parameters.append(parameter)
    floats: list[Tensor] = []
    integers: list[Tensor] = []
    buffers = list(model.named_buffers())
    saved = model.state_dict(keep_vars=True) if buffers else {}
    for name, buffer in buffers:
        if name not in saved:
            continue
        if buffer.is_complex():
            raise ValueError(f"{name} holds {buffer.dtype}: buffers must be real numbers")
        (floats if buffer.is_floating_point() else integers).append(buffer)
    return parameters, floats, integers
