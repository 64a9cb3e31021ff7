"""The line of a unit that starts a tracker, as systemd would use it. There need be no systemd here: it is not asked."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from axonp2p.errors import PortTaken
from axonp2p.service.unit import NO_USE_TO_RESTART

START_S = 60


def exec_start(home: Path) -> list[str]:
    """What the unit starts, word by word."""
    command = [sys.executable, "-m", "tracker.program", "service", "install", "--print", "--json", "--home", str(home)]
    text = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)["text"]
    (line,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    return shlex.split(line.partition("=")[2])


def begin(line: list[str], home: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start it and wait until it serves; the process and its address."""
    (home / "address").unlink(missing_ok=True)
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + START_S
    while not (home / "address").exists():
        assert process.poll() is None, process.returncode
        assert time.monotonic() < until
        time.sleep(0.05)
    return process, (home / "address").read_text().strip()


def answers(home: Path) -> bool:
    command = [sys.executable, "-m", "tracker.program", "status", "--home", str(home)]
    return subprocess.run(command, capture_output=True, timeout=60).returncode == 0


@pytest.mark.slow
def test_it_starts_serves_survives_sigkill_with_its_key_and_stops_cleanly(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('[tracker]\nlisten = "127.0.0.1:0"\n')
    line = exec_start(home)
    first, address = begin(line, home)
    try:
        assert answers(home)
        host_port = address.partition("#")[0].removeprefix("https://")
        (home / "config.toml").write_text(f'[tracker]\nlisten = "{host_port}"\n')
        first.send_signal(signal.SIGKILL)
        first.wait(30)
    finally:
        first.kill()
    second, again = begin(line, home)
    try:
        assert again == address  # with the fingerprint of its key
        assert answers(home)
        taken = subprocess.run(
            [*line[:-1], str(tmp_path / "other"), "--listen", host_port], capture_output=True, timeout=60
        )
        assert taken.returncode == PortTaken.exit_code
        assert taken.returncode in NO_USE_TO_RESTART
        second.send_signal(signal.SIGTERM)
        assert second.wait(30) == 0
    finally:
        second.kill()
    assert not (home / "address").exists()
