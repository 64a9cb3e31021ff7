"""The results of a job of this kind, for programs: the result of each item, or the one of all. Blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from axonp2p.errors import JobFailed
from axonp2p.kinds.map.call_forms import CallOutcome, open_outcome
from axonp2p.kinds.map.messages import LARGEST_RESULT
from axonp2p.kinds.map.results.results_store import ResultsStore


def fetched(results: Path) -> Any:
    """A list in the order of the items: values, a `TaskError` where the function raised, None for a cancelled call.

    Items without a result, of a job that was stopped early, are left out. Of a job with `reduce`: the one value.
    Raises `SettingsError`, and `JobFailed` where that one is missing.
    """
    store = ResultsStore(results)
    try:
        tree = store.tree()
        found = [_value(one.outcome, one.value) for one in store.read(tree.calls - 1 if tree else 0)]
        if tree and not found:
            raise JobFailed(f"{results} has no merged result", fix="axon resume with the id of the job")
        return found[0] if tree else found
    finally:
        store.close()


def _value(outcome: str, value: bytes) -> Any:
    return None if outcome == "cancelled" else open_outcome(CallOutcome(outcome == "error", value), LARGEST_RESULT)
