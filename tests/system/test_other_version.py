"""Builds of different age in one swarm: each refuses, naming both versions, or works; nobody waits for nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from axonp2p.sandbox.child import why_no_sandbox
from axonp2p.wire.codec import PROTOCOL_VERSION
from axonp2p.wire.schema import SCHEMAS
from tests.system.processes import Processes
from tests.system.small_job import write_job

pytestmark = [pytest.mark.sandbox, pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here")]

CHECKOUT = Path(__file__).parent.parent.parent
PATIENCE_S = 60.0
OTHER_PROTOCOL, OTHER_MESSAGES, THIS = PROTOCOL_VERSION - 1, "0123456789abcdef", SCHEMAS["train"]
EDITS = {
    # Sessions of another form; the messages of a job are the same.
    "protocol": [
        ("axonp2p/wire/codec.py", f"PROTOCOL_VERSION = {PROTOCOL_VERSION}", f"PROTOCOL_VERSION = {OTHER_PROTOCOL}")
    ],
    # A message of a job has another field.
    "messages": [
        ("axonp2p/wire/schema.py", THIS, OTHER_MESSAGES),
        ("axonp2p/jobs/messages.py", "    reservation: Uuid\n", "    reservation: Uuid\n    since: UnixTime\n"),
    ],
    # A need had no such field yet, and sessions were of another form.
    "table": [
        ("axonp2p/wire/codec.py", f"PROTOCOL_VERSION = {PROTOCOL_VERSION}", f"PROTOCOL_VERSION = {OTHER_PROTOCOL}"),
        ("axonp2p/peers/capability.py", "    uptime_s: Count = 0\n", "    former_uptime_s: Count = 0\n"),
        ("tracker/table/index_columns.py", "need.uptime_s", "need.former_uptime_s"),
    ],
}


class Build:
    """A copy of this build in which something is of another version."""

    def __init__(self, folder: Path, edits: str) -> None:
        self.folder = folder
        for package in ("axonp2p", "peer_daemon", "tracker", "client_cli"):
            shutil.copytree(CHECKOUT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        for name, before, after in EDITS[edits]:
            text = (folder / name).read_text()
            assert before in text, f"{name} is another one now"
            (folder / name).write_text(text.replace(before, after))

    @property
    def inside(self) -> list[str]:
        """Before the command line of a program of this build: Python looks in the working folder first."""
        return ["env", "-C", str(self.folder)]


def begin(folder: Path, tracker: str, *words: str, build: Build | None = None) -> subprocess.Popen[str]:
    """`axon` of this build, or of another one."""
    return subprocess.Popen(
        [sys.executable, "-m", "client_cli.main", *words, "--tracker", tracker],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "AXON_HOME": str(folder / "client"), "COLUMNS": "1000"},
        cwd=build.folder if build else CHECKOUT,
    )


def said_by(axon: subprocess.Popen[str]) -> str:
    """What it says until it fails, which is soon."""
    said, _ = axon.communicate(timeout=PATIENCE_S)
    assert axon.returncode not in (0, 70), said
    return " ".join(said.split())


@pytest.mark.parametrize("newer", ["the client", "the peer"])
@pytest.mark.parametrize("differ", ["protocol", "messages"])
def test_a_client_and_a_peer_of_different_versions_refuse_each_other_by_name(
    tmp_path: Path, differ: str, newer: str
) -> None:
    other = Build(tmp_path / "other", differ)
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", inside=other.inside if newer == "the client" else ())
        job = write_job(tmp_path / "job", peers=1, rounds=2)
        by = other if newer == "the peer" else None
        said = said_by(begin(tmp_path, processes.tracker, "submit", str(job), build=by))
    first, second = (PROTOCOL_VERSION, OTHER_PROTOCOL) if newer == "the peer" else (OTHER_PROTOCOL, PROTOCOL_VERSION)
    theirs, ours = (THIS, OTHER_MESSAGES) if newer == "the peer" else (OTHER_MESSAGES, THIS)
    if differ == "protocol":
        assert f"speaks protocol {first}, this side speaks {second}" in said
    else:
        assert f"its messages are {theirs}, ours {ours}" in said


def test_a_plain_job_goes_through_a_tracker_of_an_older_version(tmp_path: Path) -> None:
    older = Build(tmp_path / "older", "table")
    with Processes(tmp_path, first_tracker="") as processes:
        processes.start_tracker("tracker", inside=older.inside)
        processes.start_peers("otter")
        job = write_job(tmp_path / "job", peers=1, rounds=2)
        axon = begin(tmp_path, processes.tracker, "submit", str(job))
        assert axon.stdout is not None
        lines = []
        for line in axon.stdout:
            lines.append(line)
            if line.startswith("sent the bundle to otter"):
                break  # found, reserved and leased; what follows is between client and peer
        axon.kill()
        axon.communicate()
        assert lines[-1].startswith("sent the bundle to otter"), lines
        # What the older one does not know it refuses by name, at once.
        said = said_by(begin(tmp_path, processes.tracker, "peers", "--need", "uptime=1 s"))
    assert "unknown field `uptime_s`" in said
