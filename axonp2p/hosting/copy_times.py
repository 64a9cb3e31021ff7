"""When a second host copies a job from its host again (pure)."""

from __future__ import annotations

SHORTEST_S = 5.0
LONGEST_S = 600.0
SHARE = 16
"""The pause is this part of the time for which the copy has been kept: so much of the work is lost at the most."""
REST = 5
"""So many times as long as a copy takes, nothing is copied after it."""


def pause_before_copy(kept_s: float, took_s: float, failures: int) -> float:
    """Seconds until the next copy; the last one took so long, and so many failed in a row."""
    usual = max(SHORTEST_S, kept_s / SHARE, took_s * REST)
    return float(min(LONGEST_S, usual * 2.0 ** min(failures, 10)))
