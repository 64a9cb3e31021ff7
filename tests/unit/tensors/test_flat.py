from __future__ import annotations

import pytest
import torch
from torch import nn

from axonp2p.blobs.pieces import book_of
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


def test_parameters_come_first_then_buffers_then_the_name_of_what_is_frozen_numbers_of_many_digits_last():
    model = Everything()
    layout = flat.layout_of(model)
    assert (layout.parameters, layout.float_buffers, layout.integer_buffers) == (15 + 2 + 6, 6, 2)
    assert (layout.frozen_bytes, layout.wide_integers) == (8, 3)
    vector = flat.read(model, layout)
    assert vector.dtype == torch.float32
    assert len(vector) == layout.values == 23 + 6 + 2 + 16 + 3
    assert vector[23:29].tolist() == [0, 0, 0, 1, 1, 1]
    assert vector[29:31].tolist() == [1, 0]
    assert flat.frozen_name(vector, layout) == layout.frozen_name == book_of(b"\0\0\x80\x3f" * 2).name
    assert vector[47:].tolist() == [0, 0, 0]


def test_what_is_written_is_read_again():
    model = Everything()
    layout = flat.layout_of(model)
    name = flat.read(model, layout)[31:47]
    vector = torch.arange(layout.values, dtype=torch.float32)
    vector[29:31] = 1.0  # of a buffer that holds only true and false
    vector[31:47] = name
    vector[-2:] = 0.0  # of an integer that has room in the first of its three values
    flat.write(vector, model, layout)
    assert torch.equal(flat.read(model, layout), vector)
    assert model.frozen.tolist() == [1, 1]
    assert model.head.weight is model.table.weight
    assert model.coarse.dtype == torch.bfloat16


def test_integers_are_rounded():
    norm = nn.BatchNorm1d(1)
    layout = flat.layout_of(norm)
    flat.write(torch.tensor([1.0, 1.0, 0.0, 1.0, 6.6, 0.0, 0.0]), norm, layout)
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
        (nn.Linear(1, 1, dtype=torch.complex128), "weight holds torch.complex128, which no model file has room for"),
        (nn.Linear(1, 1, device="meta"), "weight is on no device"),
    ],
)
def test_what_cannot_travel_is_refused_by_name(model, reason):
    with pytest.raises(ValueError, match=reason):
        flat.layout_of(model)


def tensors_of(dtype):
    """Numbers of every kind that the dtype has, those included that float32 has no room for."""
    if dtype == torch.bool:
        return [torch.tensor([True, False])]
    if dtype.is_complex:
        return [torch.tensor([1.5 - 0.1j, 2j]), torch.tensor([complex(torch.inf, 1), 1j])]
    if dtype.is_floating_point:
        finite = torch.tensor([1 / 3, -0.0, 1e-7], dtype=torch.float64).to(dtype)
        odd = torch.tensor([torch.inf, -torch.inf, torch.nan, 1 / 3], dtype=torch.float64).to(dtype)
        huge = [torch.tensor([1e300, 1e-300, 1 / 3], dtype=dtype)] if dtype == torch.float64 else []
        return [finite, odd, *huge] if dtype.itemsize > 1 else [finite]
    info = torch.iinfo(dtype)
    return [torch.tensor([info.max, info.min, 0, info.max // 3], dtype=dtype)]


KINDS = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.complex64, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
]


def turned(tensor):
    return torch.tensor(tensor.tolist()[::-1], dtype=tensor.dtype)


def raw(tensor):
    return tensor.detach().reshape(-1).contiguous().view(torch.uint8).tolist()


def with_all_kinds(**more):
    model = nn.Linear(3, 2)
    for kind in KINDS:
        for number, tensor in enumerate(tensors_of(kind)):
            name = f"{str(kind).removeprefix('torch.')}_{number}"
            model.register_buffer(name, tensor.clone())
            model.register_buffer(f"{name}_scalar", tensor[0].clone())
            if kind.is_floating_point or kind.is_complex or number == 0:
                model.register_parameter(f"frozen_{name}", nn.Parameter(tensor.clone(), requires_grad=False))
    return model


def test_what_nobody_changes_comes_back_to_the_bit_whatever_it_holds():
    model, other = with_all_kinds(), with_all_kinds()
    layout = flat.layout_of(model)
    vector = flat.read(model, layout)
    assert bool(vector.isfinite().all())
    for name, tensor in other.state_dict().items():
        if "frozen" not in name:
            tensor.zero_()
    flat.write(vector, other, layout)
    for name, tensor in model.state_dict().items():
        assert raw(tensor) == raw(other.state_dict()[name]), name
    moved = flat.difference(vector.clone(), other, layout)
    assert not bool(moved.any())
    flat.write(flat.minus(vector, moved, layout), other, layout)
    for name, tensor in model.state_dict().items():
        assert raw(tensor) == raw(other.state_dict()[name]), name


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.itemsize > 1])
def test_what_one_member_changes_it_finds_again_with_every_digit(kind):
    model = nn.Linear(1, 1)
    model.register_buffer("it", tensors_of(kind)[0].clone())
    layout = flat.layout_of(model)
    start = flat.read(model, layout)
    with torch.no_grad():
        model.it.copy_(turned(model.it))
    after = raw(model.it)
    moved = flat.difference(start.clone(), model, layout)
    flat.write(start, model, layout)
    flat.write(flat.minus(start, moved, layout), model, layout)
    if kind.is_floating_point or kind.is_complex:  # a difference of floats is rounded
        close = torch.finfo(kind).eps
        torch.testing.assert_close(model.it, turned(tensors_of(kind)[0]), rtol=close, atol=close)
    else:
        assert raw(model.it) == after


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (torch.tensor([-torch.inf, 0.0]), 0.0, "it .torch.float32. held numbers that float32 has no room for"),
        (torch.tensor([1e300], dtype=torch.float64), 1e299, "it .torch.float64. held numbers"),
        (torch.tensor([1.0]), torch.inf, "it .torch.float32. became nan, infinite or too large"),
        (torch.tensor([1.0]), 1e31, "it .torch.float32. became nan, infinite or too large"),
        (torch.tensor([1.0], dtype=torch.float64), torch.nan, "it .torch.float64. became nan, infinite or too large"),
        (torch.tensor([1.0], dtype=torch.float64), 1e300, "it .torch.float64. became nan, infinite or too large"),
    ],
)
def test_a_change_of_which_no_mean_can_be_taken_is_refused_by_name(before, after, says):
    model = nn.Linear(2, 2)
    model.register_buffer("fine", torch.ones(3))
    model.register_buffer("it", before.clone())
    layout = flat.layout_of(model)
    start = flat.read(model, layout)
    model.fine.add_(1)
    model.it.fill_(after)
    with pytest.raises(ValueError, match=says):
        flat.difference(start, model, layout)


def test_an_expanded_buffer_is_left_alone_and_may_not_change():
    model = nn.Linear(1, 1)
    model.register_buffer("places", torch.arange(3).expand(2, 3))
    layout = flat.layout_of(model)
    start = flat.read(model, layout)
    flat.write(start, model, layout)
    assert model.places.tolist() == [[0, 1, 2]] * 2
    with pytest.raises(ValueError, match=r"places shares its memory with itself .* make it .contiguous\(\)"):
        flat.write(start + 1, model, layout)


def test_a_buffer_that_changes_its_kind_is_refused_by_name():
    model = nn.Linear(1, 1)
    model.register_buffer("count", torch.tensor(3))
    layout = flat.layout_of(model)
    model.count = model.count / 2
    with pytest.raises(ValueError, match=r"count held torch.int64 when model\(\) built it, and holds torch.float32"):
        flat.read(model, layout)


def test_complex_parameters_are_pairs_that_take_the_outer_step():
    model = nn.Linear(2, 1, bias=False, dtype=torch.complex64)
    layout = flat.layout_of(model)
    assert layout.parameters == layout.values == 4
    [(real, piece)] = flat.parameters(torch.arange(4.0), model, layout)
    assert real.shape == piece.shape == (1, 2, 2)
    with torch.no_grad():
        real.copy_(piece)
    assert model.weight.tolist() == [[1j, 2 + 3j]]


def test_only_what_the_optimiser_has_is_coded_in_few_bits():
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    layout = flat.layout_of(model, [torch.optim.SGD(model[1].parameters())])
    assert (layout.parameters, layout.by_hand, layout.moving, layout.frozen_bytes) == (3, 8, 0, 0)


@pytest.mark.parametrize("given", [0, 1])
def test_what_has_no_gradients_is_frozen_and_takes_no_values_whether_the_optimiser_has_it_or_not(given):
    model = nn.Sequential(nn.Linear(3, 2).requires_grad_(False), nn.Linear(2, 1))
    layout = flat.layout_of(model, [torch.optim.SGD(model[given:].parameters())])
    assert (layout.parameters, layout.values, layout.moving, layout.frozen_bytes) == (3, 3 + 16, 0, 4 * 8)
    assert list(flat.frozen_tensors(model, layout)) == ["0.weight", "0.bias"]


def test_weights_of_other_frozen_parameters_are_not_put_into_a_model():
    models = [nn.Sequential(nn.Linear(3, 2).requires_grad_(False), nn.Linear(2, 1)) for _ in range(2)]
    layouts = [flat.layout_of(model) for model in models]
    assert layouts[0].frozen_name != layouts[1].frozen_name
    with pytest.raises(ValueError, match="belong to other frozen parameters"):
        flat.write(flat.read(models[0], layouts[0]), models[1], layouts[1])


def test_tables_with_sparse_gradients_are_rows_and_so_is_all_that_sparse_adam_trains():
    model = nn.ModuleDict({"a": nn.Embedding(5, 2, sparse=True), "b": nn.Embedding(4, 2), "c": nn.Linear(1, 1)})
    assert (flat.layout_of(model).parameters, flat.layout_of(model).rows) == (8 + 2, 10)
    optimizer = torch.optim.SparseAdam([model["b"].weight])
    layout = flat.layout_of(model, [optimizer])
    assert (layout.parameters, layout.rows, layout.by_hand, layout.frozen_bytes) == (0, 8, 12, 0)
