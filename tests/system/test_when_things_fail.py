"""A full disk, a home that cannot be written, a tracker that is away: the daemon says what is wrong and lives on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from axonp2p.errors import AxonError
from peer_daemon.control import caller
from peer_daemon.control.status import Status
from tests.system.processes import Processes

pytestmark = pytest.mark.timeout(200)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")
PATIENCE_S = 60.0


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", *options, str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def until(home: Path, what: Callable[[Status], bool], why: str) -> Status:
    began, status = time.monotonic(), None
    while time.monotonic() - began < PATIENCE_S:
        try:
            status = asyncio.run(caller.ask_status(home))
            if what(status):
                return status
        except AxonError:
            pass  # it has only just begun
        time.sleep(0.2)
    raise AssertionError(f"{why}: {status}")


@needs_root
def test_on_a_full_disk_it_takes_no_work_obeys_and_goes_on_when_there_is_room(tmp_path):
    home = tmp_path / "otter"
    with mounted(home, "-t", "tmpfs", "-o", "size=48m,mode=0700", "tmpfs"), Processes(tmp_path) as processes:
        (home / "config.toml").write_text("[peer]\nkeep-disk-free-mb = 8\n")
        processes.start_peers("otter")
        until(home, lambda status: status.state == "ready", "it is not ready")
        with filling(home / "ballast") as ballast:
            full = until(home, lambda status: status.why == "disk", "it does not notice")
            assert full.state == "waiting"
            assert "of disk free" in full.sentence
            assert asyncio.run(caller.pause(home, 600)).state == "paused"
            assert asyncio.run(caller.resume(home)).state == "waiting"
            assert processes.process("otter").poll() is None
            ballast.unlink()
        until(home, lambda status: status.state == "ready", "it does not go on")
        processes.stop("otter")
        said = processes.output("otter")
        assert "orders hold until the daemon is restarted only" in said
        assert "history not kept" in said
        assert "Traceback" not in said


@contextmanager
def filling(file: Path) -> Iterator[Path]:
    """A file that takes all the room there is."""
    with file.open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(1 << 16))
        except OSError:
            pass
    yield file


@needs_root
def test_a_home_that_cannot_be_written_is_said_at_the_start(tmp_path):
    home = tmp_path / "home"
    with mounted(home, "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs"):
        command = [sys.executable, "-m", "peer_daemon.main", "run", "--home", str(home), "--listen", "127.0.0.1:0"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert said.returncode == 9
    assert said.stderr.splitlines()[0] == f"error AX-601: cannot write to {home}: Read-only file system"
    assert said.stderr.splitlines()[-1].startswith("fix: ")


def test_without_its_tracker_nobody_finds_it_and_the_owner_is_told(tmp_path):
    home = tmp_path / "otter"
    with Processes(tmp_path) as processes:
        home.mkdir()
        (home / "config.toml").write_text("[peer]\ndht = false\n")
        processes.start_peers("otter")
        until(home, lambda status: status.findable and status.network.trackers[0].answers, "it is not announced")
        processes.kill("tracker")
        away = until(home, lambda status: not status.findable, "it does not notice")
        assert [tracker.answers for tracker in away.network.trackers] == [False]
        assert away.state == "ready"
        processes.start_tracker("tracker")
        until(home, lambda status: status.findable, "it does not come back")
        assert "Traceback" not in processes.output("otter")
