"""What a step counts for: by shapes alone, whatever the model is made of."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from axonp2p.training.trainer.flops import LEAST_FLOPS, LOOKUP_FLOPS, FlopCounts, _cudnn, _cudnn_backward

IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])


def counted(model: nn.Module, batch: torch.Tensor) -> int:
    def run() -> float:
        loss: Any = model(batch).sum()
        loss.backward()
        return float(loss.item())

    return FlopCounts(model).count(batch, run)[1]


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [True, False])
def test_looking_up_counts_for_each_value_that_is_moved(sparse: bool) -> None:
    assert counted(nn.Embedding(10, 4, sparse=sparse), IDS) == LOOKUP_FLOPS * 6 * 4


@pytest.mark.parametrize("sparse", [True, False])
def test_so_it_does_in_bags(sparse: bool) -> None:
    assert counted(nn.EmbeddingBag(10, 4, mode="sum", sparse=sparse), IDS) == LOOKUP_FLOPS * 6 * 4


def test_a_large_table_counts_by_what_is_looked_up_where_gradients_are_sparse_else_by_what_is_changed() -> None:
    assert counted(nn.Embedding(10_000, 4, sparse=True), IDS) == LOOKUP_FLOPS * 6 * 4
    assert counted(nn.Embedding(10_000, 4), IDS) == LEAST_FLOPS * 40_000


def test_a_model_that_multiplies_counts_as_before() -> None:
    layer = nn.Linear(4, 2)
    assert counted(layer, torch.ones(8, 4, requires_grad=True)) == 3 * 2 * 8 * 4 * 2


def test_a_model_that_multiplies_nothing_counts_for_what_it_trains() -> None:
    class Shift(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by = nn.Parameter(torch.zeros(5))
            self.frozen = nn.Parameter(torch.zeros(100), requires_grad=False)

        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return batch + self.by

    assert counted(Shift(), torch.ones(3, 5)) == LEAST_FLOPS * 5


def test_the_count_is_the_same_wherever_the_rows_are() -> None:
    model = nn.Embedding(10, 4, sparse=True)
    assert counted(model, IDS) == counted(model, torch.zeros_like(IDS))


def test_counting_leaves_no_hooks_on_all_modules() -> None:
    """By them torch.compile would warn of a slow module, twice in each peer's log."""
    model = nn.Linear(2, 2)

    def run() -> float:
        assert not torch.nn.modules.module._has_any_global_hook()  # type: ignore[no-untyped-call]
        return float(model(torch.ones(1, 2)).sum().item())

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert FlopCounts(model).count(torch.ones(1, 2), run)[1] > 0


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(9, 64), nn.SiLU(), nn.Linear(64, 8), nn.GELU(), nn.LayerNorm(8), nn.Softmax(1))


def gradients(model: nn.Module, batch: torch.Tensor) -> list[torch.Tensor]:
    model(batch).square().sum().backward()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def test_a_step_that_is_counted_leads_to_the_same_bits_as_one_that_is_not() -> None:
    batch = torch.randn(16, 9)
    counted, plain = net(), net()
    found: list[torch.Tensor] = []
    FlopCounts(counted).count(batch, lambda: found.extend(gradients(counted, batch)) or 0.0)
    assert all(map(torch.equal, found, gradients(plain, batch)))


def test_the_count_is_that_of_torchs_own_counter() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)
    batch = torch.randn(3, 7, 32)
    with FlopCounterMode(display=False) as counter:
        layer(batch).sum().backward()
    attention = 2 * counter.get_total_flops()  # the counter has no formula for attention on processors
    assert counter.get_total_flops() < counted(layer, batch) < attention


def test_derivatives_by_what_goes_in_may_be_taken() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))

    def run() -> float:
        x = torch.ones(3, 2).requires_grad_()
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        loss = slope.square().sum()
        loss.backward()
        return float(loss.item())

    assert FlopCounts(model).count(IDS, run)[1] > 0


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lines = nn.Linear(8, 24)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        query, key, value = self.lines(batch).view(*batch.shape[:2], 3, 2, 4).permute(2, 0, 3, 1, 4)
        return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


MODELS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "convolutions": (lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3)), (2, 1, 9, 9)),
    "attention": (Attending, (2, 6, 8)),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 2, 32, 0.1, batch_first=True), (2, 7, 16)),
    "lstm": (lambda: nn.LSTM(6, 8, 2, bidirectional=True), (5, 3, 6)),
    "lstm, one way": (lambda: nn.LSTM(6, 8, batch_first=True), (5, 3, 6)),
    "lstm behind a layer": (lambda: nn.Sequential(nn.Linear(4, 6), nn.LSTM(6, 8)), (5, 3, 4)),
    "gru": (lambda: nn.GRU(6, 8, 2), (5, 3, 6)),
}


def operations(model: nn.Module, batch: torch.Tensor) -> int:
    def run() -> float:
        found: Any = model(batch)
        (found[0] if isinstance(found, tuple) else found).sum().backward()
        return 0.0

    return FlopCounts(model).count(batch, run)[1]


@pytest.mark.parametrize("name", MODELS)
def test_a_step_counts_the_same_on_any_device(name: str) -> None:
    """On one that computes nothing all is products of matrices; processors and cards have operators of their own."""
    make, shape = MODELS[name]
    assert operations(make(), torch.ones(shape)) == operations(make().to("meta"), torch.ones(shape, device="meta"))


@pytest.mark.parametrize(("layers", "both"), [(1, False), (2, True)])
@pytest.mark.parametrize("wants", [True, False])
def test_so_do_the_recurrent_layers_of_a_card(layers: int, both: bool, wants: bool) -> None:
    model = nn.LSTM(6, 8, layers, bidirectional=both).to("meta")
    batch = torch.ones(5, 3, 6, device="meta", requires_grad=wants)
    weights, hidden = list(model.parameters()), torch.ones(layers * (2 if both else 1), 3, 8, device="meta")
    first = (batch, weights, 4)
    ways = (2, 8, 0, layers, False, 0.0, True, both, [], None)
    forward = _cudnn(*first, None, hidden, hidden, *ways)
    back = _cudnn_backward(
        *first, None, hidden, hidden, batch, batch, None, None, *ways, None, [wants, False, False, True]
    )
    assert forward + back == operations(model, batch)
