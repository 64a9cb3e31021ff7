"""The counts of a connection, wherever it was counted (pure)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TcpState:
    """The counts of the kernel on one connection since it began."""

    acked_bytes: int
    """Sent, and confirmed by the other side."""
    received_bytes: int
    busy_seconds: float
    """In which something sent was not confirmed yet, or waited to be sent."""
    rtt_seconds: float
    """Smoothed, as of now."""
