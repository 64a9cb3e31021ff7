"""Two peers behind routers of their own (cone, symmetric) and a client behind a third: found, measured, hired, trained.

Nobody can dial any of them, so everything runs through two trackers as relays. One of them dies in the middle of a
round: whom it carried is hired again through the other, and the job ends well all the same.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab import kernel
from tests.lab.laboratory import ROOT, Laboratory
from tests.lab.relay import LINE
from tests.lab.site import Host
from tests.lab.swarm import NOT_ON_THE_LAN
from tests.laboratory.fork_server import fork_server
from tests.system.processes import Processes
from tests.system.small_job import write_job

ONE, OTHER, CONE, SYMMETRIC, CLIENT = range(5)
PEERS = {"cone": CONE, "symmetric": SYMMETRIC}
PATIENCE_S = 120.0

pytestmark = pytest.mark.skipif(bool(kernel.why_not()), reason=kernel.why_not() or "-")


class Routers:
    """The laboratory with its programs; used in a `with`."""

    def __init__(self, base: Path, peers: dict[str, int], trackers: dict[str, int]) -> None:
        """Peers and trackers by name, with their host's number."""
        self.base = base
        self.peers = peers
        self.trackers = trackers
        self.processes = Processes(base, first_tracker="")
        hosts = [Host(), Host(), Host(nat="cone"), Host(nat="symmetric"), Host(nat="cone")]
        self.lab = Laboratory(hosts, rtt_ms=20)

    def __enter__(self) -> Routers:
        os.environ.update(NOT_ON_THE_LAN)
        self.lab.__enter__()
        self.processes.__enter__()
        try:
            for name, host in self.trackers.items():
                knows = list(self.processes.trackers.values())
                listen = f"{self.lab.address(host)}:7070"
                self.processes.start_tracker(name, knows=knows, listen=listen, inside=self.lab.inside(host))
            for name, host in self.peers.items():
                self.processes.begin_peer(name, listen="0.0.0.0:7071", inside=self.lab.inside(host))
            for name in self.peers:
                self.processes.wait_for_peer(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.processes.__exit__()
        self.lab.__exit__(None, None, None)

    def command(self, host: int, *words: str) -> list[str]:
        return [*self.lab.inside(host), sys.executable, "-m", *words]

    def peers_seen(self) -> dict[str, dict[str, Any]]:
        """What the client sees of the peers, measured."""
        words = ["peers", "--json", "--home", str(self.base / "client")]
        told = [word for address in self.processes.trackers.values() for word in ("--tracker", address)]
        done = fork_server().run("client_cli.main", [*words, *told], 60, inside=self.lab.inside(CLIENT))
        assert done.returncode == 0, done.stderr
        return {peer["name"]: peer for peer in json.loads(done.stdout)["peers"]}

    def wait_until_relayed(self, *names: str) -> dict[str, dict[str, Any]]:
        """Until the client measures these peers through relays."""
        until = time.monotonic() + PATIENCE_S
        while True:
            seen = self.peers_seen()
            if all(name in seen and seen[name]["rtt_s"] and seen[name]["relay"] for name in names):
                return seen
            assert time.monotonic() < until, f"not relayed: {seen}\n{self.processes.output(names[0])}"
            time.sleep(0.5)

    def status(self, name: str) -> dict[str, Any]:
        home = str(self.base / name)
        inside = self.lab.inside(self.peers[name])
        done = fork_server().run("peer_daemon.main", ["status", "--json", "--home", home], 60, inside=inside)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def train(self, job: Path) -> Iterator[dict[str, Any]]:
        """The events of a job. Raises `RuntimeError` when it does not end well."""
        words = ["tests.lab.client", "submit", str(job), self.processes.tracker, str(self.base / "client")]
        with (self.base / "client.out").open("w") as complaints:
            running = subprocess.Popen(
                self.command(CLIENT, *words), stdout=subprocess.PIPE, stderr=complaints, text=True, cwd=ROOT
            )
        assert running.stdout is not None
        try:
            for line in running.stdout:
                yield json.loads(line)
        finally:
            running.kill()
            code = running.wait()
        if code > 0:
            raise RuntimeError((self.base / "client.out").read_text()[-4000:])

    def capture(self, host: int, file: Path) -> subprocess.Popen[str]:
        """Record what passes a relay's line until it is ended."""
        words = self.command(host, "tests.lab.capture", LINE, "7070", str(file))
        started = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        return started


def test_everything_works_when_nobody_can_be_dialled(tmp_path: Path) -> None:
    with Routers(tmp_path, PEERS, {"one": ONE, "other": OTHER}) as routers:
        _train_while_a_relay_dies(routers, tmp_path)


def _train_while_a_relay_dies(routers: Routers, tmp_path: Path) -> None:
    seen = routers.wait_until_relayed(*PEERS)
    for peer in seen.values():
        assert peer["rtt_s"] > 0.038  # two ways of 20 ms, and it says so
        assert peer["relay"].startswith("relay 10.77.")
    for name in PEERS:
        network = routers.status(name)["network"]
        assert network["reachable"] == "no"
        assert len(network["relays"]) == 2

    capture = routers.capture(OTHER, tmp_path / "capture.json")
    events: list[dict[str, Any]] = []
    killed = False
    # It needs both: rounds by one alone could be over before the other is back.
    job = write_job(tmp_path / "job", peers=2, least=2, wait="2 min", rounds=10, pause=0.1)
    for event in routers.train(job):
        events.append(event)
        if event["event"] == "round_progress" and event["round"] == 3 and not killed:
            routers.processes.process("one").send_signal(signal.SIGKILL)
            killed = True
    capture.terminate()
    capture.wait(20)
    assert killed
    assert events[-1]["event"] == "job_finished", events[-3:]
    assert {event["round"] for event in events if event["event"] == "round_finished"} >= set(range(10))
    (lost,) = [event["peer"] for event in events if event["event"] == "peer_lost"]
    at = next(number for number, event in enumerate(events) if event["event"] == "peer_lost")
    # It has the same lease again, by the relay that is left: nobody measures or hires it anew.
    back = [event["event"] for event in events[at:] if event.get("peer") == lost]
    assert "peer_ready" in back or "peer_hired" in back, back

    flows = json.loads((tmp_path / "capture.json").read_text())
    assert sum(flow["bytes"] for flow in flows) > 100_000
    assert [flow for flow in flows if flow["not_tls"]] == []


def test_a_peer_that_others_can_dial_is_a_relay_where_its_owner_lets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tracker carries for nobody; a volunteer with an address of its own does."""
    monkeypatch.setenv("AXON_TRACKER_RELAY", "false")
    monkeypatch.setenv("AXON_PEER_RELAY", "true")
    with Routers(tmp_path, {"volunteer": OTHER, "symmetric": SYMMETRIC}, {"one": ONE}) as routers:
        seen = routers.wait_until_relayed("symmetric")
        assert seen["symmetric"]["relay"] == f"relay {routers.lab.address(OTHER)}:7071"
        assert seen["volunteer"]["relay"] == ""
        carried = routers.status("volunteer")["network"]["carried"]
        assert carried["on"]
        assert carried["peers"] == 1
        assert carried["bytes"] > 0
        assert not routers.status("symmetric")["network"]["carried"]["on"]
