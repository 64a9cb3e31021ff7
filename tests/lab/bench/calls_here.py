"""Calls of `calls_elsewhere` through `axonp2p.Executor`, on the peers of a swarm that is up. Prints a JSON object.

    python -m tests.lab.bench.calls_here HOME empty|even|killed|lost|stopped [--peers N] [--calls N] [--seconds S]

A peer that is lost or stopped is a daemon of `axon swarm up` with all that it started. Where a process is killed, it is
the one that makes the calls at this peer.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from pathlib import Path

import psutil

import axonp2p
from axonp2p.wire.json_form import decode_json
from client_cli.swarm_file import FILE_NAME, SwarmRecord
from tests.lab.bench.calls_elsewhere import AFTER_S


def wait(seconds: float) -> float:
    """A call that does nothing else."""
    if seconds:
        time.sleep(seconds)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("case", choices=["empty", "even", "killed", "lost", "stopped"])
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
        if options.case in ("killed", "lost", "stopped"):
            threading.Timer(AFTER_S, _blow, (options.home, options.case)).start()
        began = time.monotonic()
        found = list(executor.map(wait, [seconds] * options.calls))
        took = time.monotonic() - began
    result = {"calls": len(found), "seconds": took, "job": executor.job.id}
    print(json.dumps(result))


def _blow(home: Path, case: str) -> None:
    record = decode_json((home / FILE_NAME).read_bytes(), SwarmRecord)
    daemon = psutil.Process(record.peers[0].pid)
    if case == "killed":
        call_process(daemon).kill()
        return
    for process in [daemon, *daemon.children(recursive=True)]:
        os.kill(process.pid, signal.SIGKILL if case == "lost" else signal.SIGSTOP)


def call_process(daemon: psutil.Process) -> psutil.Process:
    """The one that makes calls: it is forked from one that the worker forked, so nothing is deeper below a daemon."""
    return max(daemon.children(recursive=True), key=lambda process: len(process.parents()))


if __name__ == "__main__":
    main()
