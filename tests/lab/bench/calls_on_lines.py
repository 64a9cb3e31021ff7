"""Calls of a client on peers that all have a line like a home's, and packages that travel to them, as a client pays
for both: in seconds, and in bytes that the kernel counted out of the client's line."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axonp2p.wheels.bundled import named
from tests.lab.bench.calls_client import CALL_S
from tests.lab.bench.ground import Ground, on_lines
from tests.lab.bench.settings import Lines
from tests.lab.swarm import LabSwarm, Told

PACKAGES = ("scikit-learn", "scipy", "joblib")
PORT = 8088
TIMES = 3
"""Jobs with the packages and without them, by turns, once all peers have the packages."""


@dataclass(frozen=True)
class Peers:
    """How many, on lines of what kind."""

    number: int = 8
    lines: Lines = field(default_factory=lambda: Lines(up=20, down=100, rtt_ms=40))

    @contextmanager
    def swarm(self, folder: Path) -> Iterator[tuple[Ground, LabSwarm]]:
        """All of them, up."""
        with on_lines(self.lines, self.number) as ground, LabSwarm(ground, folder) as swarm:
            swarm.start(*range(self.number))
            yield ground, swarm


def lines(peers: Peers, folder: Path, calls: int = 160) -> dict[str, Any]:
    """The share of what as many calls of a second, with 100 KB each, would take on as many processors here."""
    with peers.swarm(folder) as (ground, swarm):
        before = ground.lab.traffic(ground.client).sent
        found = swarm.run_client(
            "tests.lab.bench.calls_client", "lines", "--peers", str(peers.number), "--calls", str(calls)
        )
        sent = ground.lab.traffic(ground.client).sent - before
    return found | {"ideal": calls * CALL_S / peers.number, "sent": sent}


def grid(peers: Peers, folder: Path) -> dict[str, Any]:
    """A grid search over 50 MB: bytes that leave the client, everything included."""
    with peers.swarm(folder) as (ground, swarm):
        before = ground.lab.traffic(ground.client).sent
        found = swarm.run_client("tests.lab.bench.calls_client", "grid", "--peers", str(peers.number))
        sent = ground.lab.traffic(ground.client).sent - before
    return found | {"sent": sent, "copies": sent / found["array"]}


def packages(peers: Peers, folder: Path) -> dict[str, Any]:
    """A job that brings scikit-learn, then jobs with and without it by turns."""
    index = folder / "index"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--dest", str(index)]
    subprocess.run([*pip, *PACKAGES], check=True)  # a client on a line of the laboratory reaches no other index
    first = _job(folder / "first", peers.number, PACKAGES, uses=True)
    jobs = {True: _job(folder / "with", peers.number, PACKAGES), False: _job(folder / "without", peers.number, ())}
    with peers.swarm(folder / "swarm") as (ground, swarm):
        _serve(ground, index)
        told = _followed(ground, swarm, first)
        later: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
        for brings in [True, False] * TIMES:
            later[brings].append(_followed(ground, swarm, jobs[brings]))
    seconds = {brings: statistics.median(one["seconds"] for one in found) for brings, found in later.items()}
    return {
        "wheels": told["wheels"],
        "bytes": told["wheel_bytes"],
        "sent": told["sent"],
        "copies": told["sent"] / told["wheel_bytes"],
        "seconds": told["seconds"],
        "again_bytes": max(one["pieces"] for one in later[True]),
        "again_seconds": seconds[True] - seconds[False],
        "resolving_seconds": statistics.median(one["resolving"] for one in later[True]),
        "later": later[True] + later[False],
    }


def _serve(ground: Ground, wheels: Path) -> None:
    """A package index at the server, which has these wheels, and which pip is told of."""
    for wheel in [*wheels.glob("*.whl")]:
        place = wheels / named(wheel.name)[0]
        place.mkdir(exist_ok=True)
        wheel.rename(place / wheel.name)
    lab, address = ground.lab, ground.address(ground.server)
    words = [sys.executable, "-u", "-m", "http.server", str(PORT), "--bind", address, "--directory", str(wheels)]
    assert lab.start(ground.server, *words).readline().startswith("Serving")
    os.environ.pop("PIP_FIND_LINKS", None)
    own = {"PIP_INDEX_URL": f"http://{address}:{PORT}/", "PIP_TRUSTED_HOST": address, "PIP_CONFIG_FILE": os.devnull}
    os.environ.update(own)


def _job(folder: Path, peers: int, wanted: tuple[str, ...], *, uses: bool = False) -> Path:
    folder.mkdir(parents=True)
    names = ["sklearn", "scipy", "joblib"] if uses else []
    looks = "".join(f"    import {name}\n    assert '/.wheels/' in {name}.__file__\n" for name in names)
    (folder / "work.py").write_text(f"def work(item):\n{looks}    return item\n")
    lines = ['name = "packages"', 'kind = "map"', "[need]", f"peers = {peers}", f"min-peers = {peers}"]
    lines += ['memory = "500 MB"', 'max-rtt = "5 s"', "[map]", 'fn = "work.py:work"', f"items = {4 * peers}"]
    lines += ["quorum = 1", "[packages]", f"install = {list(wanted)}"] if wanted else ["quorum = 1"]
    (folder / "job.toml").write_text("\n".join(lines) + "\n")
    return folder


def _followed(ground: Ground, swarm: LabSwarm, job: Path) -> dict[str, Any]:
    """What it took of the client's line and time. A call that fails fails the job."""
    before, told = ground.lab.traffic(ground.client).sent, list(swarm.submit(job))
    sent = ground.lab.traffic(ground.client).sent - before

    def all_of(event: str) -> list[Told]:
        return [one for one in told if one["event"] == event]

    resolved, (done,) = all_of("packages_resolved"), all_of("calls_done")
    assert not done["failed"], all_of("call_failed")
    return {
        "sent": sent,
        "seconds": told[-1]["at"] - told[0]["at"],
        "pieces": sum(one["bytes"] for one in all_of("bundle_sent")),
        "wheels": [name for one in resolved for name in one["wheels"]],
        "wheel_bytes": sum(one["bytes"] for one in resolved),
        "resolving": sum(one["seconds"] for one in resolved),
    }
