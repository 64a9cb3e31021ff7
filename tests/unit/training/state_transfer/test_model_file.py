"""The model's file from a state's file, against what safetensors writes of the model that holds the state."""

from __future__ import annotations

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from axonp2p.tensors import flat
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.tensors.frozen import FrozenTensors
from axonp2p.training.trainer.file_layout import file_layout
from axonp2p.training.trainer.outer_optimizer import first_state
from tests.unit.training.written_model import written


class Net(nn.Module):
    """Every kind of tensor: tied ones, halves, buffers, and one that the state dict makes up."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(5, 4)
        self.tied = nn.Linear(5, 4, bias=False)
        self.tied.weight = self.one.weight
        self.frozen = nn.Linear(3, 3).requires_grad_(False)
        self.turned = nn.Parameter(torch.randn(3, 4).T)
        self.half = nn.Linear(300, 20).to(torch.bfloat16)
        self.small = nn.Linear(300, 20).to(torch.float16)
        self.double = nn.Linear(2, 2).double()
        self.norm = nn.BatchNorm1d(3)
        self.complex = nn.Parameter(torch.randn(3, 2, dtype=torch.complex64))
        self.register_buffer("mask", torch.tensor([True, False]))
        self.register_buffer("count", torch.tensor([2**40 + 1, -7, 2**62 - 3, 2**63 - 1, -(2**63)]))
        self.register_buffer("unsigned", torch.tensor([2**64 - 1, 0], dtype=torch.uint64))
        self.register_buffer("less", torch.tensor([-(2**31), 5], dtype=torch.int32))
        self.register_buffer("sizes", torch.tensor([2**32 - 1, 5], dtype=torch.uint32))
        for kind in (torch.int8, torch.uint8, torch.int16, torch.uint16):
            ends = torch.iinfo(kind)
            self.register_buffer(f"ends of {kind}".replace(".", " "), torch.tensor([ends.min, ends.max, 1], dtype=kind))
        self.register_buffer("turns", torch.randn(3, dtype=torch.complex64))
        self.register_buffer("beyond", torch.tensor([float("-inf"), 1e300, float("nan")], dtype=torch.float64))
        for kind in (torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2, torch.complex64):
            self.register_buffer(f"inf {kind}".replace(".", " "), torch.tensor([float("inf"), 1.5, -0.0]).to(kind))
        self.register_buffer('é "\\\n\x01', torch.tensor(3.5))
        self.register_buffer("nothing", torch.zeros(0, 3))
        self.register_buffer("table", torch.arange(3.0).expand(2, 3))
        self.register_buffer("cache", torch.randn(5), persistent=False)
        self.register_buffer("eight", torch.randn(4000).to(torch.float8_e4m3fn))
        self.register_buffer("wider", torch.randn(4000).to(torch.float8_e5m2))
        self.still = nn.Linear(300, 300).requires_grad_(False)
        self.still.turned = nn.Parameter(torch.randn(5, 40).T, requires_grad=False)
        self.still.bits = nn.Parameter(torch.arange(-9, 9, dtype=torch.int8), requires_grad=False)
        self.still.odd = nn.Parameter(torch.tensor([1 / 3, torch.inf], dtype=torch.float64), requires_grad=False)
        self.still.again = self.still.bits

    def get_extra_state(self) -> Tensor:
        return torch.tensor([1.0])

    def set_extra_state(self, state: Tensor) -> None:
        pass


def saved(net: nn.Module) -> bytes:
    """What safetensors makes of the model's state dict."""
    return safetensors.torch.save({name: one.detach().clone().contiguous() for name, one in net.state_dict().items()})


@pytest.mark.parametrize("seed", range(3))
def test_the_file_is_the_model_s_to_the_byte(seed: int) -> None:
    torch.manual_seed(seed)
    net = Net()
    layout = flat.layout_of(net)
    vector = flat.read(net, layout)
    vector[: layout.parameters] = torch.randn(layout.parameters)  # a mean: of no half's own kind
    for name in ("eight", "wider"):
        begin = flat.places(net, layout)[name].begin
        small = vector[begin : begin + 4000]
        small.copy_(10 ** torch.empty(4000).uniform_(-9, 6) * small.sign())
    doubles = layout.bounds["wide floats"]
    vector[doubles] += torch.randn(layout.wide_floats) * vector[doubles].abs().clamp(1e-9, 1.0)
    state = first_state(vector, layout)
    told = file_layout(net, layout)
    assert told == file_layout(Net(), layout), "not the values, but names, shapes and places are told"
    flat.write(state.weights, net, layout)
    frozen = FrozenTensors(flat.frozen_tensors(net, layout), layout.frozen)
    file = written(told, state.file, Model(layout.parameters, layout.values, len(frozen)), bytes(frozen[:]))
    assert file == saved(net)
    assert safetensors.torch.load(file).keys() == net.state_dict().keys()


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.float16, torch.bfloat16])
def test_a_number_between_two_becomes_what_it_becomes_in_the_model(dtype: torch.dtype) -> None:
    unit = torch.uint8 if dtype.itemsize == 1 else torch.int16
    ends = torch.iinfo(unit)
    all_of_them = torch.arange(ends.min, ends.max + 1).to(unit).view(dtype).float()
    numbers = all_of_them[all_of_them.isfinite()].sort().values
    middles = (numbers[1:] + numbers[:-1]) / 2
    beside = torch.cat([middles.nextafter(torch.tensor(torch.inf)), middles.nextafter(torch.tensor(-torch.inf))])
    beyond = numbers[-1] * torch.tensor([1.01, 1.03, 1.0357142857, 1.04, 1.0714285714, 1.08, 1.2, -1.2, 3])
    vector = torch.cat([numbers, middles, beside, beyond])
    vector = vector[vector.isfinite()]
    net = nn.Module()
    net.register_buffer("weight", torch.zeros(len(vector), dtype=dtype))
    layout = flat.layout_of(net)
    flat.write(vector, net, layout)
    assert written(file_layout(net, layout), bytes(vector.numpy()), Model(0, len(vector))) == saved(net)


def test_a_state_dict_that_holds_other_tensors_than_the_model_is_refused() -> None:
    class Halved(nn.Linear):
        def state_dict(self, *args, **kwargs):  # type: ignore[no-untyped-def, override]
            return {name: one.half() for name, one in super().state_dict(*args, **kwargs).items()}

    net = Halved(2, 2)
    with pytest.raises(ValueError, match="other tensors than the model"):
        file_layout(net, flat.layout_of(net))
