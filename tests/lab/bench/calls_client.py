"""A client's program on a line of the laboratory: calls with arguments of their own, or a grid search.

    python -m tests.lab.bench.calls_client TRACKER HOME lines|grid [--peers N] [--calls N]

lines  each call takes a second and has 100 KB of its own to read
grid   scikit-learn's `GridSearchCV` through joblib; all its calls have the same 50 MB to read

Prints a JSON object. Seconds are from the first call to the last result, once all workers are up.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV  # type: ignore[import-untyped]
from sklearn.naive_bayes import GaussianNB  # type: ignore[import-untyped]

import axonp2p
import axonp2p.joblib

ARGUMENT_BYTES = 100_000
CALL_S = 1.0
ROWS, COLUMNS = 12_500, 500
"""Of 8 bytes each: 50 MB."""
GRID = {"var_smoothing": np.logspace(-9, -2, 8).tolist()}
FOLDS = 3


def wait(seconds: float) -> float:
    """A call that does nothing else."""
    time.sleep(seconds)
    return seconds


def read_call(seconds: float, numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """A call that is given numbers to read."""
    time.sleep(seconds)
    return float(numbers.sum())


def lines(executor: axonp2p.Executor, calls: int) -> dict[str, Any]:
    """So many calls with an array each."""
    chance = np.random.default_rng(0)
    arrays = [chance.random(ARGUMENT_BYTES // 8) for _ in range(calls)]
    began = time.monotonic()
    futures = [executor.submit(read_call, CALL_S, array) for array in arrays]
    found = [future.result() for future in futures]
    took = time.monotonic() - began
    assert found == [float(array.sum()) for array in arrays]
    return {"calls": calls, "seconds": took}


def grid(executor: axonp2p.Executor, calls: int) -> dict[str, Any]:
    """A search whose scores are compared with those of the same search here."""
    chance = np.random.default_rng(0)
    numbers = chance.random((ROWS, COLUMNS))
    classes = (numbers[:, 0] + 0.5 * chance.random(ROWS) > 0.75).astype(int)
    began = time.monotonic()
    with parallel_config("axon", executor=executor):
        search = GridSearchCV(GaussianNB(), GRID, cv=FOLDS, n_jobs=-1, refit=False).fit(numbers, classes)
    took = time.monotonic() - began
    here = GridSearchCV(GaussianNB(), GRID, cv=FOLDS, refit=False).fit(numbers, classes)
    assert search.cv_results_["mean_test_score"].tolist() == here.cv_results_["mean_test_score"].tolist()
    return {"calls": FOLDS * len(GRID["var_smoothing"]), "seconds": took, "array": numbers.nbytes}


CASES = {"lines": lines, "grid": grid}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tracker")
    parser.add_argument("home")
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--peers", type=int, default=8)
    parser.add_argument("--calls", type=int, default=160, help="of lines")
    options = parser.parse_args()
    need = {"memory": "500 MiB", "cores": 1, "min-peers": options.peers, "max-rtt": "5 s", "wait": "60 s"}
    with axonp2p.Executor(options.peers, [options.tracker], options.home, need=need) as executor:
        list(executor.map(wait, [0.2] * 4 * options.peers))  # all workers are up
        result = CASES[options.case](executor, options.calls)
    print(json.dumps(result | {"job": executor.job.id}))


if __name__ == "__main__":
    main()
