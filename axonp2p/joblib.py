"""A backend of joblib whose calls are made by peers; importing this module is enough to have it.

    import axonp2p.joblib
    from joblib import parallel_config

    with parallel_config("axon", peers=8):
        GridSearchCV(model, grid, n_jobs=-1).fit(X, y)

Calls go out as pickles, which the peers' sandboxes open. Results come back as plain values (`axonp2p.values`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import axonp2p
from axonp2p.errors import NotPlain, TaskError
from axonp2p.missing_modules import not_installed

try:
    from joblib import register_parallel_backend
    from joblib.parallel import AutoBatchingMixin, ParallelBackendBase, SequentialBackend
except ImportError as error:
    raise not_installed(["joblib"], "axonp2p.joblib") from error


class AxonBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """The backend "axon" of `joblib.parallel_config`."""

    default_n_jobs = -1
    supports_retrieve_callback = True
    supports_inner_max_num_threads = False

    def __init__(
        self,
        nesting_level: int | None = None,
        inner_max_num_threads: int | None = None,
        *,
        executor: Executor | None = None,
        peers: int = 4,
        **settings: Any,
    ) -> None:
        """`executor` makes the calls; without it an `axonp2p.Executor` with these `peers` and `settings` does.

        That one is made with the first call, and ends with the block of `parallel_config`. `settings` are those of
        `axonp2p.Executor`, such as `packages={"install": ["scikit-learn"]}`.
        """
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self._executor = executor
        self._settings = {"peers": peers, **settings}
        self._calls: weakref.WeakSet[Future[Any]] = weakref.WeakSet()

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """How many calls may be made at once. joblib calls this with the name of the argument.

        Two at the least where peers make them, for joblib makes them here if it is told one.
        """
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is not None and n_jobs > 0:
            return n_jobs
        cores = int(self._settings.get("need", {}).get("cores", 1))
        return max(2, int(self._settings["peers"]) * cores)

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], None] | None = None) -> Future[Any]:
        """Let the batch `func` be called by a peer, and `callback` here when it was."""
        future = self._opened().submit(call_batch, func)
        self._calls.add(future)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """The results of a batch. Raises what it raised, as `TaskError` or `NotPlain`."""
        try:
            return out.result()
        except TaskError as error:
            if error.kind == NotPlain.__name__:  # its three parts, as `AxonError` writes them
                message, _, fix = error.reason.partition("\nfix: ")
                message, _, cause = message.partition("\ncause: ")
                raise NotPlain(message, cause=cause, fix=fix) from error
            raise

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """A call has failed: the others are not needed."""
        for future in list(self._calls):
            future.cancel()

    def get_nested_backend(self) -> tuple[Any, None]:
        """At a peer a batch makes its own calls one after the other: the peer's cores have other batches."""
        return SequentialBackend(nesting_level=(self.nesting_level or 0) + 1), None

    def _opened(self) -> Executor:
        if self._executor is None:
            executor: Executor = axonp2p.Executor(**self._settings)
            self._executor = executor
            weakref.finalize(self, executor.shutdown, wait=False)
        return self._executor


def call_batch(batch: Callable[[], Any]) -> Any:
    """At a peer: make the calls of a batch."""
    return batch()


register_parallel_backend("axon", AxonBackend)
