"""What a job of this kind came to, for programs: the result of each item. Blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from axonp2p.kinds.map.call_forms import CallOutcome, open_outcome
from axonp2p.kinds.map.messages import LARGEST_RESULT
from axonp2p.kinds.map.results_store import ResultsStore


def fetched(results: Path) -> list[Any]:
    """In the order of their items: values, a `TaskError` where the function raised, None for a cancelled call.

    Items without a result, of a job that was stopped early, are left out. Raises `SettingsError`.
    """
    store = ResultsStore(results)
    try:
        return [_value(one.outcome, one.value) for one in store.read()]
    finally:
        store.close()


def _value(outcome: str, value: bytes) -> Any:
    return None if outcome == "cancelled" else open_outcome(CallOutcome(outcome == "error", value), LARGEST_RESULT)
