"""A model's file compared with the accepted state that it has to hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from axonp2p.blobs.pieces import book_of
from axonp2p.tensors import flat
from axonp2p.training.state_transfer.checkpoint_file import Model, header_of
from axonp2p.training.state_transfer.model_file import holds
from axonp2p.training.trainer.local_trainer import model_file
from axonp2p.training.trainer.outer_optimizer import first_state


class Net(nn.Module):
    """Every kind of tensor: tied ones, halves, buffers, and one that the state dict makes up."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(5, 4)
        self.tied = nn.Linear(5, 4, bias=False)
        self.tied.weight = self.one.weight
        self.half = nn.Linear(3, 2).to(torch.bfloat16)
        self.small = nn.Linear(3, 2).to(torch.float16)
        self.double = nn.Linear(2, 2).double()
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("mask", torch.tensor([True, False]))
        self.register_buffer("count", torch.tensor([2**40 + 1, -7, 2**62 - 3]))
        self.register_buffer("turns", torch.view_as_complex(torch.randn(3, 2)))
        self.register_buffer("beyond", torch.tensor([float("-inf"), 1e300, float("nan")], dtype=torch.float64))
        self.eight = nn.Parameter(torch.randn(40).to(torch.float8_e4m3fn), requires_grad=False)

    def get_extra_state(self) -> torch.Tensor:
        return torch.tensor([1.0])


@pytest.fixture
def net() -> Net:
    torch.manual_seed(1)
    return Net()


@pytest.fixture
def kept(net: Net, tmp_path: Path) -> tuple[Path, Model]:
    layout = flat.layout_of(net)
    vector = flat.read(net, layout)
    vector[: layout.parameters] = torch.randn(layout.parameters)  # a mean: of no half's own kind
    vector[layout.bounds["still"]] = 3 * torch.randn(layout.still)
    state = first_state(vector, layout)
    flat.write(state.weights, net, layout)
    model = Model(layout.parameters, layout.values)
    path = tmp_path / "state"
    path.write_bytes(header_of("job-1", 1, book_of(state.file).name, model) + bytes(state.file))
    return path, model


def test_an_honest_file_holds_the_state(net: Net, kept: tuple[Path, Model], tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_bytes(model_file(net, flat.layout_of(net)))
    assert holds(file, *kept)
    assert load_file(file).keys() == net.state_dict().keys()


@pytest.mark.parametrize(
    "name",
    ["one.bias", "half.weight", "small.bias", "double.weight", "norm.num_batches_tracked", "count", "turns", "eight"],
)
def test_one_other_value_is_found(name: str, net: Net, kept: tuple[Path, Model], tmp_path: Path) -> None:
    with torch.no_grad():
        last = net.state_dict()[name].view(-1)[-1:]
        last.copy_((last.to(torch.float64) + 2).to(last.dtype) if last.is_floating_point() else last + 2)
    file = tmp_path / "model"
    file.write_bytes(model_file(net, flat.layout_of(net)))
    assert not holds(file, *kept)


def test_a_file_that_does_not_say_where_its_values_stand_is_not_believed(
    net: Net, kept: tuple[Path, Model], tmp_path: Path
) -> None:
    file = tmp_path / "model"
    save_file({"one.bias": net.one.bias.detach()}, file)
    assert not holds(file, *kept)
    save_file({"one.bias": net.one.bias.detach()}, file, {"axon.places": '{"one.bias": ["values", 20, 0]}'})
    assert not holds(file, *kept), "it has to have all of them"


DEEP = b'{"w":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
DEEP_WORDS = b'{"__metadata__":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001


@pytest.mark.parametrize(
    "junk",
    [b"", b"x", b"\xff" * 64]
    + [len(header).to_bytes(8, "little") + header for header in (b"[]", b'{"\xff":1}', DEEP, DEEP_WORDS)],
    ids=["empty", "short", "long header", "list", "no text", "deep", "deep words"],
)
def test_junk_is_no_file(junk: bytes, kept: tuple[Path, Model], tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_bytes(junk)
    assert not holds(file, *kept)
