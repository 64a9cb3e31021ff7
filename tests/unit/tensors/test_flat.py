from __future__ import annotations

import pytest
import torch
from torch import nn

from axonp2p.tensors import flat


class Everything(nn.Module):
    """Tied parameters, a frozen one, buffers of all kinds, and one that is not saved."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.table.weight
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
        self.norm = nn.BatchNorm1d(3)
        self.coarse = nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
        self.register_buffer("seen", torch.tensor([True, False]))
        self.register_buffer("scratch", torch.zeros(100), persistent=False)


def test_parameters_come_first_then_float_buffers_then_integer_ones():
    model = Everything()
    layout = flat.layout_of(model)
    assert (layout.parameters, layout.float_buffers, layout.integer_buffers) == (15 + 2 + 6 + 2, 6, 1 + 2)
    vector = flat.read(model, layout)
    assert vector.dtype == torch.float32
    assert len(vector) == layout.values
    assert vector[25:31].tolist() == [0, 0, 0, 1, 1, 1]
    assert sorted(vector[31:].tolist()) == [0, 0, 1]


def test_what_is_written_is_read_again():
    model = Everything()
    layout = flat.layout_of(model)
    vector = torch.arange(layout.values, dtype=torch.float32)
    vector[31:33] = 1.0  # of a buffer that holds only true and false
    flat.write(vector, model, layout)
    assert torch.equal(flat.read(model, layout), vector)
    assert model.head.weight is model.table.weight
    assert model.coarse.dtype == torch.bfloat16


def test_integers_are_rounded():
    norm = nn.BatchNorm1d(1)
    layout = flat.layout_of(norm)
    flat.write(torch.tensor([1.0, 1.0, 0.0, 1.0, 6.6]), norm, layout)
    assert norm.num_batches_tracked.item() == 7


def test_writing_leaves_no_gradient_and_keeps_the_parameters():
    model = nn.Linear(2, 1)
    before = model.weight
    layout = flat.layout_of(model)
    flat.write(torch.zeros(layout.values), model, layout)
    assert model.weight is before
    assert model.weight.requires_grad
    assert model.weight.grad_fn is None


def test_a_model_that_changed_is_refused():
    model = nn.Sequential(nn.Linear(2, 1))
    layout = flat.layout_of(model)
    model.append(nn.Linear(1, 1))
    with pytest.raises(ValueError, match="changed"):
        flat.read(model, layout)
    with pytest.raises(ValueError, match="changed"):
        flat.write(torch.zeros(layout.values), model, layout)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (nn.LazyLinear(3), "no size yet"),
        (nn.Linear(1, 1, dtype=torch.complex64), "must be real"),
    ],
)
def test_what_float32_cannot_hold_is_refused(model, reason):
    with pytest.raises(ValueError, match=reason):
        flat.layout_of(model)
