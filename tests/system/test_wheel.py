"""The wheel in an environment of its own, without torch: what a client does on a real swarm, and what it cannot do."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from axonp2p.errors import NotInstalled
from axonp2p.sandbox.child import why_no_sandbox
from tests.laboratory.clean_environment import ROOT, CleanEnvironment, build_wheel
from tests.system.processes import Processes
from tests.system.small_job import write_job
from tests.system.test_run_job import SQUARE, write

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(180),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]
OTHER_SYSTEM = ROOT / "tests" / "laboratory" / "other_system.py"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    folder = tmp_path_factory.mktemp("wheel")
    return CleanEnvironment(folder / "client", build_wheel(folder))


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with Processes(tmp_path_factory.mktemp("swarm")) as running:
        running.start_peers("otter", "wren")
        yield running


def run(home: Path, *command: Path | str) -> subprocess.CompletedProcess[str]:
    """In an empty folder and with no other environment of ours to find."""
    words = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment = {**words, "AXON_HOME": str(home)}
    home.mkdir(exist_ok=True)
    told = [str(word) for word in command]
    return subprocess.run(told, cwd=home, env=environment, capture_output=True, text=True, timeout=120)


def test_a_client_without_torch_trains_a_model_on_peers_and_has_its_weights(
    client: CleanEnvironment, swarm: Processes, tmp_path: Path
) -> None:
    assert not client.libraries & {"torch", "safetensors", "sqlite-utils"}
    home, axon = tmp_path / "home", client.program("axon")
    job = write_job(tmp_path / "job", peers=2, rounds=2)
    submitted = run(home, axon, "submit", job, "--tracker", swarm.tracker)
    assert submitted.returncode == 0, submitted.stderr + submitted.stdout
    (told,) = json.loads(run(home, axon, "jobs", "--json").stdout)["jobs"]
    fetched = run(home, axon, "fetch", told["id"], "-o", tmp_path / "out")
    assert fetched.returncode == 0, fetched.stderr
    assert (tmp_path / "out" / "model.safetensors").stat().st_size > 12
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_the_client_submits_without_what_other_systems_lack(
    client: CleanEnvironment, swarm: Processes, tmp_path: Path, system: str
) -> None:
    job = write(tmp_path / "job", SQUARE, copies=2, peers=2)
    done = run(
        tmp_path / "home",
        *(client.python, "-P", OTHER_SYSTEM, system, "client_cli.main", "submit", job, "--tracker", swarm.tracker),
    )
    assert done.returncode == 0, done.stderr + done.stdout


def test_what_needs_torch_or_a_tracker_names_the_command_that_brings_it(
    client: CleanEnvironment, tmp_path: Path
) -> None:
    home, axon = tmp_path / "home", client.program("axon")
    demo = run(home, axon, "demo")
    assert demo.returncode == NotInstalled.exit_code
    assert demo.stderr.splitlines()[-1] == 'fix: pip install "axonp2p[torch,tracker]"'
    tracker = run(home, client.program("axon-tracker"), "run")
    assert tracker.stderr.splitlines()[-1] == 'fix: pip install "axonp2p[tracker]"'
    checked = run(home, axon, "check", write_job(tmp_path / "job", peers=1, rounds=1))
    assert 'pip install "axonp2p[torch]"' in checked.stdout
    script = "import axonp2p; axonp2p.load_weights"
    assert 'fix: pip install "axonp2p[torch]"' in run(home, client.python, "-c", script).stderr


def test_the_wheel_has_the_programs_and_the_units(client: CleanEnvironment, tmp_path: Path) -> None:
    for name in ("axon", "axon-peer", "axon-tracker", "axon-verify-ledger"):
        assert client.program(name).exists()
    assert run(tmp_path / "home", client.program("axon-verify-ledger"), "--help").returncode == 0
    unit = run(tmp_path / "home", client.program("axon-peer"), "service", "install", "--print").stdout
    assert f'ExecStart="{client.python}" "-P" "-m" "peer_daemon.main" "run"' in unit
