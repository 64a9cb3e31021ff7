"""Muon for the hidden matrices of a model, AdamW for all its other parameters: `axonp2p.muon` gives it to authors.

Muon takes steps whose singular values are all about equal (Jordan et al. 2024). It suits local steps between exchanges:
differences of such steps lose less than those of AdamW to few bits and to few exchanges (MuLoCo, arXiv 2505.23725).
What looks up, and what answers, is no hidden matrix: tables of embeddings, also where they are tied to the answer, and
output layers are AdamW's, as its authors have it.
"""

from __future__ import annotations

from collections.abc import Collection

from torch import nn, optim

HEADS = ("head", "heads", "lm_head", "classifier", "score", "fc", "qa_outputs")
"""What output layers are called in the models of most libraries."""
_TABLES = (nn.Embedding, nn.EmbeddingBag)


def muon(
    model: nn.Module,
    lr: float = 1e-3,
    *,
    weight_decay: float = 0.01,
    momentum: float = 0.95,
    betas: tuple[float, float] = (0.9, 0.95),
    heads: Collection[str] = HEADS,
) -> list[optim.Optimizer]:
    """The optimisers of a model: `torch.optim.Muon` and `torch.optim.AdamW`; one of them, where nothing is left to it.

    Muon's steps are brought to the length of AdamW's, so `lr` and `weight_decay` are of AdamW's size, and those of
    both. `momentum` is Muon's, `betas` are AdamW's. `heads` are names of modules, or parts of them, whose matrices are
    AdamW's: `heads=["out"]`, or `["3"]` for the fourth layer of an `nn.Sequential`.
    """
    tables = {id(one) for part in model.modules() if isinstance(part, _TABLES) for one in part.parameters(recurse=False)}
    hidden, others = [], []
    for name, one in model.named_parameters():
        if one.requires_grad:
            plain = one.ndim != 2 or one.is_complex() or id(one) in tables or not set(name.split(".")).isdisjoint(heads)
            (others if plain else hidden).append(one)
    made: list[optim.Optimizer] = []
    if hidden:
        steps_like = "match_rms_adamw"
        made.append(
            optim.Muon(hidden, lr=lr, weight_decay=weight_decay, momentum=momentum, adjust_lr_fn=steps_like)
        )
    if others:
        made.append(optim.AdamW(others, lr=lr, weight_decay=weight_decay, betas=betas))
    return made
