"""Muon for the hidden matrices of a model, AdamW for all its other parameters: `axonp2p.muon` gives it to authors.

Muon takes steps whose singular values are all about equal (Jordan et al. 2024). It learns more from each sample than
AdamW, and so it does where local steps are exchanged in few bits (MuLoCo, arXiv 2505.23725). A matrix that looks up, or
that answers, is no hidden one: tables of embeddings, also where they are tied to the answer, and output layers are
AdamW's, as its authors have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor, nn, optim

HEADS = ("head", "heads", "lm_head", "classifier", "score", "fc", "qa_outputs")
"""The names of output layers in the models of most libraries."""
_TABLES = (nn.Embedding, nn.EmbeddingBag)
_LEAST_NORM = 1e-7


class Muon(optim.Muon):
    """`torch.optim.Muon` with steps of the length of AdamW's, computed in float32.

    torch computes them in bfloat16. Processors without instructions for that need twenty times as long, and two that
    round differently come to steps that differ by some percent, where checks of the work look for less than that.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for one in group["params"]:
                if one.grad is not None:
                    self._take(one, group)
        return loss

    def _take(self, one: nn.Parameter, group: dict[str, Any]) -> None:
        gradient, state = one.grad, self.state[one]
        assert gradient is not None
        if gradient.is_sparse:
            raise RuntimeError("Muon does not support sparse gradients")
        gathered = state.setdefault("momentum_buffer", torch.zeros_like(gradient))
        gathered.lerp_(gradient, 1 - group["momentum"])
        step = gradient.lerp(gathered, group["momentum"]) if group["nesterov"] else gathered
        one.mul_(1 - group["lr"] * group["weight_decay"])
        one.add_(
            _orthogonal(step.float(), group["ns_coefficients"], group["ns_steps"]),
            # Of a matrix whose singular values are 1, this has the root mean square of most steps of AdamW
            # (Liu et al. 2025, arXiv 2502.16982).
            alpha=-group["lr"] * 0.2 * math.sqrt(max(one.shape)),
        )


def _orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], iterations: int) -> Tensor:
    """About the nearest one whose singular values are all 1: Newton and Schulz's iteration, to the fifth power."""
    first, third, fifth = coefficients
    tall = matrix.shape[0] > matrix.shape[1]
    found = matrix.T if tall else matrix
    found = found / found.norm().clamp(min=_LEAST_NORM)
    for _ in range(iterations):
        square = found @ found.T
        found = torch.addmm(found, torch.addmm(square, square, square, beta=third, alpha=fifth), found, beta=first)
    return found.T if tall else found


def muon(
    model: nn.Module,
    lr: float = 5e-3,
    *,
    weight_decay: float = 0.01,
    momentum: float = 0.95,
    betas: tuple[float, float] = (0.9, 0.95),
    heads: Collection[str] = HEADS,
) -> list[optim.Optimizer]:
    """The optimisers of a model: `Muon` and `torch.optim.AdamW`, or one of them if nothing is left to the other.

    The steps of both have about the same length, so `lr` and `weight_decay` are those of both; Muon bears several times
    the `lr` of AdamW alone. `momentum` is Muon's, `betas` are AdamW's. `heads` are names of modules whose matrices are
    AdamW's, such as `["out"]`. The last layer of an `nn.Sequential` always is.
    """
    tables = {
        id(one) for part in model.modules() if isinstance(part, _TABLES) for one in part.parameters(recurse=False)
    }
    plain = {*heads, *_last_layer(model)}
    hidden: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, one in model.named_parameters():
        if one.requires_grad:
            matrix = one.ndim == 2 and not one.is_complex() and id(one) not in tables
            (hidden if matrix and plain.isdisjoint(name.split(".")) else others).append(one)
    made: list[optim.Optimizer] = []
    if hidden:
        made.append(Muon(hidden, lr=lr, weight_decay=weight_decay, momentum=momentum))
    if others:
        made.append(optim.AdamW(others, lr=lr, weight_decay=weight_decay, betas=betas))
    return made


def _last_layer(model: nn.Module) -> list[str]:
    """The name of an output layer that has none but its number."""
    if not isinstance(model, nn.Sequential):
        return []
    named = [(name, part) for name, part in model.named_children() if any(True for _ in part.parameters())]
    return [name for name, part in named[-1:] if isinstance(part, nn.Linear)]
