"""Peers and balances as tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from axonp2p.client.looking import Credits, SeenPeer
from axonp2p.identity.peer_id import short
from client_cli.render import columns, credits_text, flops_text, plural


def peers_text(peers: Sequence[SeenPeer]) -> str:
    """A line a peer."""
    if not peers:
        return "No peer is free.  Lend a machine: axon-peer run --tracker URL"
    heads = ["peer", "id", "rtt", "cores", "memory", "GFLOPS", "free", "GPU"]
    rows = [
        [
            peer.name,
            short(peer.peer),
            "-" if peer.rtt_s is None else f"{peer.rtt_s * 1000:.1f} ms",
            str(peer.offer.cores),
            f"{peer.offer.memory_mb:,} MiB",
            f"{peer.offer.gflops:.0f}",
            f"{peer.offer.free} of {peer.offer.slots}",
            ", ".join(gpu.name for gpu in peer.offer.gpus) or "-",
        ]
        for peer in peers
    ]
    return columns(heads, rows, right=(2, 3, 4, 5))


def credits_table(credits: Credits) -> str:
    """A line a key, and what they are the sum of."""
    rows = [
        [
            balance.name,
            short(balance.key),
            credits_text(balance.earned),
            credits_text(balance.owed),
            flops_text(balance.earned_flops or balance.owed_flops),
            str(balance.receipts),
        ]
        for balance in credits.balances
    ]
    table = columns(["who", "id", "earned", "owed", "work", "receipts"], rows, right=(2, 3, 4, 5))
    return f"{table}\nsum of {plural(credits.receipts, 'receipt')} at {credits.tracker}"
