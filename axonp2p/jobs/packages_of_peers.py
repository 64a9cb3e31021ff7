"""Packages that no job brings along: every peer has its own, or they belong to the peer's torch. Pure."""

from __future__ import annotations

from packaging.utils import canonicalize_name

OF_THE_PEER = ("torch", "numpy", "safetensors")
"""Every peer has these and every worker has loaded them before packages arrive: no other one would be used."""
_NEVER = frozenset({*OF_THE_PEER, "triton", "axonp2p"})
_NEVER_BEGINS = ("nvidia-", "pytorch-triton")


def never_travels(name: str) -> bool:
    """Whether a package is never sent, under any spelling of its name."""
    plain = canonicalize_name(name)
    return plain in _NEVER or plain.startswith(_NEVER_BEGINS)
