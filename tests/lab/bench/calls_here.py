"""Calls of `calls_elsewhere` through `axonp2p.Executor`, on the peers of a swarm that is up. Prints a JSON object.

    python -m tests.lab.bench.calls_here HOME empty|even|killed|stopped|lines [--peers N] [--calls N] [--seconds S]

A peer that is killed or stopped is a daemon of `axon swarm up` with its workers. `lines`: each call has 100 KB of its
own to read, and the trackers are those of HOME's settings.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import psutil

import axonp2p
from axonp2p.wire.json_form import decode_json
from client_cli.swarm_file import FILE_NAME, SwarmRecord
from tests.lab.bench.calls_elsewhere import AFTER_S

ARGUMENT_BYTES = 100_000


def wait(seconds: float) -> float:
    """A call that does nothing else."""
    if seconds:
        time.sleep(seconds)
    return seconds


def read_call(seconds: float, numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """A call that is given numbers to read."""
    time.sleep(seconds)
    return float(numbers.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("case", choices=["empty", "even", "killed", "stopped", "lines"])
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=0.05, help="of one call")
    parser.add_argument("--memory", default="500 MiB", help="of each peer")
    parser.add_argument("--quorum", default="1", help="how many peers must give an equal result")
    options = parser.parse_args()
    seconds = 0.0 if options.case == "empty" else options.seconds
    need = {"memory": options.memory, "cores": 1}
    quorum = int(options.quorum) if options.quorum.isdigit() else options.quorum
    with axonp2p.Executor(options.peers, home=options.home, need=need, map={"quorum": quorum}) as executor:
        list(executor.map(wait, [0.02] * 10 * options.peers))  # all workers are up
        if options.case in ("killed", "stopped"):
            threading.Timer(AFTER_S, _blow, (options.home, options.case)).start()
        began = time.monotonic()
        if options.case == "lines":
            chance = np.random.default_rng(0)
            arrays = [chance.random(ARGUMENT_BYTES // 8) for _ in range(options.calls)]
            futures = [executor.submit(read_call, seconds, array) for array in arrays]
            found = [future.result() for future in futures]
            assert found == [float(array.sum()) for array in arrays]
        else:
            found = list(executor.map(wait, [seconds] * options.calls))
        took = time.monotonic() - began
    result = {"calls": len(found), "seconds": took, "job": executor.job.id}
    print(json.dumps(result))


def _blow(home: Path, case: str) -> None:
    record = decode_json((home / FILE_NAME).read_bytes(), SwarmRecord)
    daemon = psutil.Process(record.peers[0].pid)
    for process in [daemon, *daemon.children(recursive=True)]:
        os.kill(process.pid, signal.SIGKILL if case == "killed" else signal.SIGSTOP)


if __name__ == "__main__":
    main()
