"""The client of a job of calls gets SIGKILL five seconds after it began, and `axon resume` continues the job each time.

A job of a folder on four local peers, so what is killed is all that there is of the client: `axon submit` or `axon
resume`. At the end each item has one result, equal to that of a plain loop.
"""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import axonp2p
from axonp2p.kinds.map.record import MapRecord

ITEMS = 1000
EVERY_S = 5.0
LONGEST_S = 1800.0
_AXON = (sys.executable, "-m", "client_cli.main")

_WORK = """
import hashlib, time

def value(item):
    return {"item": item, "hash": hashlib.sha256(str(item).encode()).hexdigest(), "half": item / 2}

def work(item):
    time.sleep(0.2)
    return value(item)
"""


def kills(folder: Path) -> dict[str, Any]:
    """Kills until the job is done, and what became of it."""
    home, job = folder / "home", _job(folder / "job")
    _axon("swarm", "up", "-n", "4", "--home", home, "--json")
    try:
        began, count = time.monotonic(), 0
        while _killed(["resume", *ids] if (ids := _ids(home)) else ["submit", job], home):
            count += 1
            if time.monotonic() - began > LONGEST_S:
                raise RuntimeError(f"not done after {LONGEST_S:g} s and {count} kills")
        took = time.monotonic() - began
        return _found(home, job, count) | {"seconds": took}
    finally:
        _axon("swarm", "down", "--home", home, "--json")


def _job(folder: Path) -> Path:
    folder.mkdir()
    (folder / "work.py").write_text(_WORK)
    lines = ['name = "kills"', 'kind = "map"', "[need]", "peers = 4", 'memory = "256 MB"', 'max-rtt = "5 s"']
    lines += ["[map]", 'fn = "work.py:work"', f"items = {ITEMS}"]
    (folder / "job.toml").write_text("\n".join(lines) + "\n")
    return folder


def _axon(*words: object) -> None:
    subprocess.run([*_AXON, *map(str, words)], check=True, capture_output=True)


def _killed(words: list[Any], home: Path) -> bool:
    """Whether the client had to be killed; False when it ended well. Raises `RuntimeError` when it ended otherwise."""
    command = [*_AXON, *map(str, words), "--home", str(home), "--page", ""]
    before = _told(home)
    with (home / "client.out").open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as client:
        while client.poll() is None and _told(home) == before:
            time.sleep(0.1)  # on a busy machine its modules alone may take longer to load than its life is to last
        try:
            code = client.wait(EVERY_S)
        except subprocess.TimeoutExpired:
            client.send_signal(signal.SIGKILL)
            return True
    if code:
        raise RuntimeError(f"the client ended with {code}:\n{(home / 'client.out').read_text()[-4000:]}")
    return False


def _told(home: Path) -> int:
    """How long the job's events are."""
    return sum(file.stat().st_size for file in home.glob("jobs/*/events.jsonl"))


def _ids(home: Path) -> list[str]:
    """The job's, unless its client was killed before it had written anything."""
    with axonp2p.Swarm(home=home) as swarm:
        return [record.id for record in swarm.jobs()]


def _found(home: Path, job: Path, count: int) -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("work", job / "work.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with axonp2p.Swarm(home=home) as swarm:
        (record,) = swarm.jobs()
        done = swarm.attach(record.id)
        results = done.fetch()
    assert isinstance(record, MapRecord)
    lines = [json.loads(line) for line in (done.folder / "events.jsonl").read_text().splitlines()]
    told = sum(line["calls"] for line in lines if line["event"] == "chunk_done")
    return {
        "items": record.items,
        "results": record.results,
        "failed": record.failed,
        "kills": count,
        "told": told,
        "each_once": (record.items, record.results, record.failed) == (ITEMS, ITEMS, 0) and told <= ITEMS,
        "equal": results == [module.value(item) for item in range(ITEMS)],
    }
