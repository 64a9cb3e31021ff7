"""joblib's loops through our pickles and values, in another process; `tests/system` makes the same calls at peers."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import pytest
from joblib import Parallel, delayed, parallel_config

import axonp2p.joblib
from axonp2p.errors import NotPlain, TaskError
from tests.laboratory.codec_executor import CodecExecutor
from tests.laboratory.scikit_calls import REFUSED, WORKING, X, same


@pytest.fixture(scope="module")
def executor() -> Iterator[CodecExecutor]:
    with CodecExecutor() as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKING)
def test_scikit_learn_is_unchanged_and_gives_the_same_numbers(name: str, executor: CodecExecutor) -> None:
    executor.sent.clear()
    executor.calls.clear()
    with parallel_config("axon", executor=executor):
        found = WORKING[name](-1)
    assert executor.calls, "all calls were made here"
    assert same(found, WORKING[name](1))


def test_the_data_of_all_calls_travel_once(executor: CodecExecutor) -> None:
    executor.sent.clear()
    executor.calls.clear()
    with parallel_config("axon", executor=executor):
        WORKING["GridSearchCV"](-1)
    assert sum(executor.sent.values()) <= 1.2 * X.nbytes
    assert max(executor.calls) < X.nbytes


@pytest.mark.parametrize("name", REFUSED)
def test_fitted_estimators_are_refused_with_the_way_out(name: str, executor: CodecExecutor) -> None:
    with parallel_config("axon", executor=executor), pytest.raises(NotPlain) as refused:
        REFUSED[name](-1)
    assert re.match(r"a value of type sklearn\.[\w.]+ cannot travel back \(result\[0\]", refused.value.message)
    assert refused.value.fix.startswith("fit inside the task and return arrays or numbers")


def _failing(number: int) -> int:
    if number == 2:
        raise ValueError("two is not to be had")
    return number


def test_an_exception_comes_back_by_its_name_and_ends_the_loop(executor: CodecExecutor) -> None:
    with parallel_config("axon", executor=executor), pytest.raises(TaskError) as failed:
        Parallel(n_jobs=2)(delayed(_failing)(number) for number in range(50))
    assert failed.value.kind == "ValueError"
    assert failed.value.reason == "two is not to be had"
    assert "_failing" in failed.value.traceback


def test_results_can_be_taken_as_they_come(executor: CodecExecutor) -> None:
    with parallel_config("axon", executor=executor):
        found = Parallel(n_jobs=2, return_as="generator_unordered")(delayed(pow)(number, 2) for number in range(20))
        assert sorted(found) == [number**2 for number in range(20)]


def test_loops_within_a_loop_are_made_at_the_peer(executor: CodecExecutor) -> None:
    def inner(number: int) -> list[int]:
        return list(Parallel(n_jobs=-1)(delayed(pow)(number, power) for power in range(3)))

    with parallel_config("axon", executor=executor):
        assert Parallel()(delayed(inner)(number) for number in range(3)) == [[1, 0, 0], [1, 1, 1], [1, 2, 4]]


def test_as_many_calls_at_once_as_there_are_cores_or_as_are_asked_for() -> None:
    backend = axonp2p.joblib.AxonBackend(peers=8, need={"cores": 4})
    assert backend.effective_n_jobs(n_jobs=-1) == 32
    assert backend.effective_n_jobs(n_jobs=None) == 32
    assert backend.effective_n_jobs(n_jobs=5) == 5
    assert axonp2p.joblib.AxonBackend(peers=1).effective_n_jobs(n_jobs=-1) == 2
    with parallel_config("axon", peers=8):
        assert joblib.effective_n_jobs(-1) == 8


def test_an_executor_of_its_own_ends_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []
    ended: list[bool] = []

    class Here(ThreadPoolExecutor):
        def __init__(self, **settings: Any) -> None:
            super().__init__(2)
            made.append(settings)

        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait, cancel_futures=cancel_futures)
            ended.append(wait)

    monkeypatch.setattr(axonp2p, "Executor", Here, raising=False)
    with parallel_config("axon", peers=3, need={"cores": 2}):
        for _ in range(2):
            assert Parallel()(delayed(pow)(number, 2) for number in range(4)) == [0, 1, 4, 9]
        assert not ended
    gc.collect()
    assert made == [{"peers": 3, "need": {"cores": 2}}]
    assert ended == [False]
