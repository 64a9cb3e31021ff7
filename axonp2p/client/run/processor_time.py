"""The worth of processor seconds at a peer: by the speed that its row tells, as far as a core can have it. Pure."""

from __future__ import annotations

from typing import Any

from axonp2p.peers.capability import read_capability

MOST_CORE_GFLOPS = 400.0
"""A row may boast: no core that a sandbox runs on has more float32 speed (two 512-bit FMA units at 5 GHz make 320)."""


def flops_of(cpu_seconds: float, capability: dict[str, Any] | None) -> int:
    """`capability` is that of the peer's row."""
    offer = read_capability(capability or {})
    core_gflops = min(offer.gflops / max(1, offer.cores), MOST_CORE_GFLOPS)
    return round(cpu_seconds * core_gflops * 1e9)
