"""Measure how fast this machine multiplies float32 matrices: `python -m peer_daemon.lending.speed CORES`.

A program of its own, so that the daemon never loads numpy and its thread pool. It prints one number, in GFLOPS.
"""

from __future__ import annotations

import os
import sys
import time

SIDE = 1024
_FLOPS = 2 * SIDE**3
_MEASURE_FOR_S = 0.5
# Each of the libraries that numpy may be linked with reads its own variable, once, when it is loaded.
_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def thread_environment(cores: int) -> dict[str, str]:
    """The environment in which numpy uses `cores` threads."""
    return dict.fromkeys(_THREAD_VARIABLES, str(cores))


def measure() -> float:
    """GFLOPS of the fastest multiplication within half a second: other programs only ever make one slower."""
    import numpy  # the threads must be set before it is loaded

    random = numpy.random.default_rng(0)
    left = random.random((SIDE, SIDE), dtype=numpy.float32)
    right = random.random((SIDE, SIDE), dtype=numpy.float32)
    into = numpy.empty_like(left)
    numpy.matmul(left, right, out=into)  # the first one pays for threads and page faults
    fastest = float("inf")
    end = time.perf_counter() + _MEASURE_FOR_S
    while time.perf_counter() < end:
        started = time.perf_counter()
        numpy.matmul(left, right, out=into)
        fastest = min(fastest, time.perf_counter() - started)
    return _FLOPS / fastest / 1e9


if __name__ == "__main__":
    os.environ.update(thread_environment(int(sys.argv[1])))
    print(f"{measure():.2f}")
