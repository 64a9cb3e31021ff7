"""`axon demo` as people run it: whole processes, real sandboxes, and nothing left behind however it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from axonp2p.sandbox.child import why_no_sandbox

no_sandbox = why_no_sandbox()
pytestmark = [pytest.mark.sandbox, pytest.mark.skipif(bool(no_sandbox), reason=no_sandbox or "a sandbox can be had")]

AXON = Path(sys.executable).parent / "axon"


@contextmanager
def demo(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A demo whose state lies below `folder/tmp`, its results in `folder/out`."""
    (folder / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "HOME": str(folder / "home")}
    environment.pop("AXON_HOME", None)
    process = subprocess.Popen(
        [AXON, "demo", "--out", str(folder / "out"), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if "--json" in options else subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=folder,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def processes_of(folder: Path) -> list[str]:
    """What still runs and has `folder` on its command line."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(folder) in line and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(line)
    return found


def assert_nothing_left(folder: Path, output: str) -> None:
    assert processes_of(folder) == []
    assert [str(path) for path in (folder / "tmp").rglob("*")] == []
    assert not (folder / "home").exists()
    for port in re.findall(r"https://127\.0\.0\.1:(\d+)", output):
        with socket.socket() as listener:
            # Closed lines may linger in the kernel (TIME_WAIT); that nobody listens there any more is what counts.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", int(port)))
            listener.listen()


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """All lines up to the one that has `text`."""
    assert process.stdout
    seen = ""
    for line in process.stdout:
        seen += line
        if text in line:
            return seen
    pytest.fail(f"never said {text!r}:\n{seen}")


def run_as_json(folder: Path, *options: str) -> tuple[dict[str, Any], str]:
    with demo(folder, "--json", *options) as process:
        out, told = process.communicate(timeout=240)
    assert process.returncode == 0, told + out
    (answer,) = out.splitlines()
    assert_nothing_left(folder, told)
    found: dict[str, Any] = json.loads(answer)
    return found, told


def test_four_strangers_train_as_well_as_one_process(tmp_path: Path) -> None:
    answer, told = run_as_json(tmp_path)
    assert answer["accuracy"] >= 0.95
    assert abs(answer["accuracy"] - answer["baseline_accuracy"]) <= 0.02
    assert answer["accuracy"] == pytest.approx(answer["reported_accuracy"], abs=0.005)
    assert (answer["peers"], answer["rounds"], answer["lost"]) == (4, 20, [])
    assert 0 < answer["bytes_on_wire"] < answer["bytes_of_every_gradient"]
    assert answer["ledger_ok"] is True
    events = [json.loads(line) for line in (tmp_path / "out" / "events.jsonl").read_text().splitlines()]
    took_part = [len(event["peers"]) for event in events if event["event"] == "round_finished"]
    assert max(took_part) == 4  # on a busy machine one may join after the first round
    assert answer["receipts"] == sum(took_part)
    assert answer["credits"] == pytest.approx(sum(answer["credits_by_peer"].values()))
    assert answer["credits"] == pytest.approx(answer["flops"] * 200 / 86400e9)
    assert answer["seconds"] > answer["job_seconds"] > 0
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} >= {"model.safetensors", "metrics.csv", "logs"}
    assert len((out / "metrics.csv").read_text().splitlines()) == 1 + 20
    assert sorted(path.stem for path in (out / "logs").iterdir()) == ["heron", "lynx", "otter", "wren"]
    assert "round=20/20" in told


def test_a_peer_is_killed_midway_and_the_job_ends_well(tmp_path: Path) -> None:
    answer, told = run_as_json(tmp_path, "--kill-one")
    assert answer["killed"] == "wren"
    assert answer["lost"] == ["wren"]
    assert answer["accuracy"] >= 0.95
    assert answer["rounds"] == 20
    assert answer["ledger_ok"] is True
    assert "wren is stopped on purpose (kill -9" in told
    assert "Its shards go to the 3 peers left" in told


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("Starting a swarm", signal.SIGINT),
        ("tracker   ready", signal.SIGTERM),
        ("peers     ready", signal.SIGINT),
        ("submitted", signal.SIGTERM),
        ("round=2/", signal.SIGINT),
        ("evaluating", signal.SIGTERM),
    ],
)
def test_stopped_at_any_moment_it_leaves_nothing_behind(tmp_path: Path, moment: str, number: signal.Signals) -> None:
    with demo(tmp_path, "--peers", "2") as process:
        seen = read_until(process, moment)
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number, seen + out
    assert "Traceback" not in out
    assert_nothing_left(tmp_path, seen)


def test_killed_outright_it_takes_its_processes_along(tmp_path: Path) -> None:
    with demo(tmp_path, "--peers", "2") as process:
        read_until(process, "round=2/")
        running = psutil.Process(process.pid).children(recursive=True)
        assert len(running) >= 5
        # Next to a busy program an idle worker would hardly move, and somebody waits for it.
        assert os.SCHED_IDLE not in {os.sched_getscheduler(found.pid) for found in running}
        assert "libtorch" not in Path(f"/proc/{process.pid}/maps").read_text()
        process.kill()
        process.wait()
    _, alive = psutil.wait_procs(running, timeout=60)
    assert [found for found in alive if found.status() != psutil.STATUS_ZOMBIE] == []


def test_a_peer_that_cannot_start_is_named_and_nothing_stays(tmp_path: Path) -> None:
    home = tmp_path / "given"
    home.mkdir()
    (home / "peer-lynx").write_text("a file where a folder should be")
    with demo(tmp_path, "--home", str(home)) as process:
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 9, out
    assert "error AX-601" in out
    assert "peer-lynx" in out
    assert_nothing_left(tmp_path, out)
    assert not (home / "swarm.json").exists()


def test_kept_it_can_be_used_and_stopped_by_the_commands_it_names(tmp_path: Path) -> None:
    with demo(tmp_path, "--keep", "--peers", "2") as process:
        out, _ = process.communicate(timeout=240)
    try:
        assert process.returncode == 0, out
        assert len(processes_of(tmp_path)) >= 3
    finally:
        down = re.search(r"axon (swarm down --home \S+)", out)
        assert down, out
        done = subprocess.run([AXON, *down[1].split()], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "otter" in done.stdout
    assert processes_of(tmp_path) == []
