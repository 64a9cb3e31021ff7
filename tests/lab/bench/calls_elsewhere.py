"""The same calls in another system's pool of four processes on this machine: loky, Dask or Ray. Prints a JSON object.

    python -m tests.lab.bench.calls_elsewhere loky|dask|ray empty|even|killed|stopped [--calls N] [--seconds S]

It runs in that system's own environment, so it imports nothing of Axon. A worker that is killed or stopped is a child
of this program, chosen a second after the first call began.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def loky() -> Iterator[Mapped]:
    from loky import get_reusable_executor  # type: ignore[import-not-found]

    executor = get_reusable_executor(max_workers=WORKERS, timeout=None)
    yield lambda fn, items: list(executor.map(fn, items))
    executor.shutdown(wait=False, kill_workers=True)


@contextmanager
def dask() -> Iterator[Mapped]:
    from distributed import Client, LocalCluster  # type: ignore[import-not-found]

    cluster = LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None)
    client = Client(cluster)
    yield lambda fn, items: client.gather(client.map(fn, items, pure=False))
    client.close(timeout=2)
    cluster.close(timeout=2)


@contextmanager
def ray() -> Iterator[Mapped]:
    import ray as it  # type: ignore[import-not-found]

    it.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="error")

    def mapped(fn: Call, items: list[float]) -> list[int]:
        remote = it.remote(fn)
        return list(it.get([remote.remote(item) for item in items]))

    yield mapped
    it.shutdown()


SYSTEMS = {"loky": loky, "dask": dask, "ray": ray}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=sorted(SYSTEMS))
    parser.add_argument("case", choices=["empty", "even", "killed", "stopped"])
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=0.05, help="of one call")
    options = parser.parse_args()
    seconds = 0.0 if options.case == "empty" else options.seconds
    os.setsid()
    with SYSTEMS[options.system]() as mapped:
        workers = sorted(set(mapped(call, [0.02] * 10 * WORKERS)))  # all of them are up
        _end(_measure(mapped, options.case, options.calls, seconds, workers[0]))


def _measure(mapped: Mapped, case: str, calls: int, seconds: float, victim: int) -> dict[str, Any]:
    blow = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}.get(case)
    if blow is not None:
        threading.Timer(AFTER_S, os.kill, (victim, blow)).start()
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
