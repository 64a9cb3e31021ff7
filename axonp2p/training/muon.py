"""Muon for the hidden matrices of a model, AdamW for all its other parameters: `axonp2p.muon` gives it to authors.

Muon takes steps whose singular values are all about equal (Jordan et al. 2024). It learns more from each sample than
AdamW, and so it does where local steps are exchanged in few bits (MuLoCo, arXiv 2505.23725). What looks up, and what
answers, is no hidden matrix: tables of embeddings, also where they are tied to the answer, and output layers are
AdamW's, as its authors have it.
"""

from __future__ import annotations

from collections.abc import Collection

from torch import nn, optim

HEADS = ("head", "heads", "lm_head", "classifier", "score", "fc", "qa_outputs")
"""What output layers are called in the models of most libraries."""
_TABLES = (nn.Embedding, nn.EmbeddingBag)


def muon(
    model: nn.Module,
    lr: float = 5e-3,
    *,
    weight_decay: float = 0.01,
    momentum: float = 0.95,
    betas: tuple[float, float] = (0.9, 0.95),
    heads: Collection[str] = HEADS,
) -> list[optim.Optimizer]:
    """The optimisers of a model: `torch.optim.Muon` and `torch.optim.AdamW`, or one of them if nothing is left to it.

    The steps of both have about the same length, so `lr` and `weight_decay` are those of both; Muon bears several times
    the `lr` of AdamW alone. `momentum` is Muon's, `betas` are AdamW's. `heads` are names of modules whose matrices are
    AdamW's, such as `["out"]`. The last layer of an `nn.Sequential` always is.
    """
    tables = {
        id(one) for part in model.modules() if isinstance(part, _TABLES) for one in part.parameters(recurse=False)
    }
    plain = {*heads, *_last_layer(model)}
    hidden, others = [], []
    for name, one in model.named_parameters():
        if one.requires_grad:
            matrix = one.ndim == 2 and not one.is_complex() and id(one) not in tables
            (hidden if matrix and plain.isdisjoint(name.split(".")) else others).append(one)
    made: list[optim.Optimizer] = []
    if hidden:
        # By this rule its steps have the length of AdamW's.
        rule = "match_rms_adamw"
        made.append(optim.Muon(hidden, lr=lr, weight_decay=weight_decay, momentum=momentum, adjust_lr_fn=rule))
    if others:
        made.append(optim.AdamW(others, lr=lr, weight_decay=weight_decay, betas=betas))
    return made


def _last_layer(model: nn.Module) -> list[str]:
    """The name of an output layer that has none but its number."""
    if not isinstance(model, nn.Sequential):
        return []
    named = [(name, part) for name, part in model.named_children() if any(True for _ in part.parameters())]
    return [name for name, part in named[-1:] if isinstance(part, nn.Linear)]
