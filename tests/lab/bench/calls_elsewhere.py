"""The same calls in another system's pool of four processes on this machine: loky, Dask or Ray. Prints a JSON object.

    python -m tests.lab.bench.calls_elsewhere loky|dask|ray empty|even|killed|lost|stopped [--calls N] [--seconds S]

It runs in that system's own environment, so it imports nothing of Axon. A process that is killed or stopped is one that
makes calls, a child of this program. In the case `lost` the pool is four machines, played on this one, and all of one
dies at once: for Dask four programs `dask worker`, each a nanny and its worker, for Ray four nodes of one processor
beside a head that has none. loky has no counterpart.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

WORKERS = 4
AFTER_S = 1.0
"""From the first call until something happens to a worker."""
LONGEST_S = 60.0

Call = Callable[[float], int]
Mapped = Callable[[Call, list[float]], list[int]]


def call(seconds: float) -> int:
    """One call: it waits, and says where."""
    if seconds:
        time.sleep(seconds)
    return os.getpid()


@dataclass(frozen=True)
class Pool:
    """Four workers that are up soon."""

    mapped: Mapped
    lose: Callable[[], object] | None = None
    """End all processes of one machine."""


@contextmanager
def loky(machines: bool) -> Iterator[Pool]:
    from loky import get_reusable_executor  # type: ignore[import-not-found]

    executor = get_reusable_executor(max_workers=WORKERS, timeout=None)
    yield Pool(lambda fn, items: list(executor.map(fn, items)))
    executor.shutdown(wait=False, kill_workers=True)


@contextmanager
def dask(machines: bool) -> Iterator[Pool]:
    from distributed import Client, LocalCluster  # type: ignore[import-not-found]

    own = 0 if machines else WORKERS
    cluster = LocalCluster(n_workers=own, threads_per_worker=1, dashboard_address=None)
    client = Client(cluster)
    words = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
    words += ["--nthreads", "1", "--nworkers", "1", "--no-dashboard"]
    nannies = [subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True) for _ in range(WORKERS - own)]
    try:
        client.wait_for_workers(WORKERS)
        mapped: Mapped = lambda fn, items: client.gather(client.map(fn, items, pure=False))  # noqa: E731
        yield Pool(mapped, lambda: os.killpg(nannies[0].pid, signal.SIGKILL))
        client.close(timeout=2)
        cluster.close(timeout=2)
    finally:
        for nanny in nannies:
            with suppress(ProcessLookupError):
                os.killpg(nanny.pid, signal.SIGKILL)


@contextmanager
def ray(machines: bool) -> Iterator[Pool]:
    import ray as it  # type: ignore[import-not-found]

    lose, cluster = None, None
    if machines:
        from ray.cluster_utils import Cluster  # type: ignore[import-not-found]

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        nodes = [cluster.add_node(num_cpus=1) for _ in range(WORKERS)]
        it.init(address=cluster.address, log_to_driver=False, logging_level="error")
        lose = lambda: cluster.remove_node(nodes[0], allow_graceful=False)  # noqa: E731
    else:
        it.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="error")

    def mapped(fn: Call, items: list[float]) -> list[int]:
        remote = it.remote(fn)
        return list(it.get([remote.remote(item) for item in items]))

    try:
        yield Pool(mapped, lose)
    finally:
        it.shutdown()
        if cluster is not None:
            cluster.shutdown()


SYSTEMS = {"loky": loky, "dask": dask, "ray": ray}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=sorted(SYSTEMS))
    parser.add_argument("case", choices=["empty", "even", "killed", "lost", "stopped"])
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=0.05, help="of one call")
    options = parser.parse_args()
    seconds = 0.0 if options.case == "empty" else options.seconds
    os.setsid()
    if options.case == "lost" and options.system == "loky":
        _end({"none": "no counterpart"})
    with SYSTEMS[options.system](options.case == "lost") as pool:
        workers = sorted(set(pool.mapped(call, [0.02] * 10 * WORKERS)))  # all of them are up
        result = _measure(pool, options.case, options.calls, seconds, workers[0])
        if options.case != "lost":
            _end(result)
    _end(result)


def _measure(pool: Pool, case: str, calls: int, seconds: float, victim: int) -> dict[str, Any]:
    mapped = pool.mapped
    blow = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}.get(case)
    if blow is not None:
        threading.Timer(AFTER_S, os.kill, (victim, blow)).start()
    if case == "lost" and pool.lose is not None:
        threading.Timer(AFTER_S, pool.lose).start()
    # What never ends is a result too.
    threading.Timer(LONGEST_S, _end, ({"error": f"not done after {LONGEST_S:g} s", "seconds": LONGEST_S},)).start()
    began = time.monotonic()
    try:
        found = mapped(call, [seconds] * calls)
    except Exception as error:  # whatever that system says is what is shown
        return {"error": type(error).__name__, "seconds": time.monotonic() - began}
    return {"calls": len(found), "seconds": time.monotonic() - began, "workers": len(set(found))}


def _end(result: dict[str, Any]) -> None:
    """Say it, and go with all processes of the group: some of these systems wait for workers that are stopped."""
    print(json.dumps(result))
    sys.stdout.flush()
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
