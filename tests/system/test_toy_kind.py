"""A new kind of work touches its own room and one line: real programs of a copy of the house that has both."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from axonp2p.sandbox.child import why_no_sandbox
from tests.system.processes import Processes

HOUSE = Path(__file__).parent.parent.parent
TOY = HOUSE / "tests" / "laboratory" / "toy"
LONGEST = 60
"""Lines of the toy kind beside its imports: what a kind cannot do without."""
LINE = '        *[JobKind("{0}", *(f"axonp2p.kinds.{0}.kind:{{part}}" for part in {1}), "axonp2p.kinds.{0}.worker")],\n'
CLIENT = """
import sys, axonp2p, msgspec
tracker, home, folder = sys.argv[1:]
with axonp2p.Swarm(trackers=[tracker], home=home) as swarm:
    job = swarm.submit(folder)
    for event in job.events():
        print(msgspec.json.encode(event).decode())
    print(job.folder)
"""

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(120),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]


def house_with(room: Path, parts: tuple[str, ...], place: Path) -> Path:
    """A copy of all programs with one room and one line more, and the hash of its messages."""
    for program in ("axonp2p", "peer_daemon", "client_cli", "tracker"):
        shutil.copytree(HOUSE / program, place / program, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(room, place / "axonp2p" / "kinds" / room.name, ignore=shutil.ignore_patterns("__pycache__"))
    registry = place / "axonp2p" / "jobs" / "kinds.py"
    before, place_of_kinds, after = registry.read_text().partition("    for kind in (\n")
    registry.write_text(before + place_of_kinds + LINE.format(room.name, parts) + after)
    schema = place / "axonp2p" / "wire" / "schema.py"  # which `scripts/write_messages_page` writes
    known = f'SCHEMAS: Final = {{"{room.name}": "{16 * "7"}",'
    schema.write_text(schema.read_text().replace("SCHEMAS: Final = {", known))
    return place


def events_of(place: Path, room: Path, parts: tuple[str, ...], job: str, *peers: str) -> tuple[list[dict], str]:
    """What a client of that house is told of a job with these lines of job.toml, and where the job is kept."""
    house = house_with(room, parts, place / "house")
    inside = ["env", f"--chdir={house}", f"PYTHONPATH={house}"]
    folder = place / "job"
    folder.mkdir()
    (folder / "job.toml").write_text(job)
    with Processes(place) as processes:
        processes.start_peers(*peers, inside=inside)
        words = [processes.tracker, str(place / "client"), str(folder)]
        ran = subprocess.run(
            [*inside, sys.executable, "-c", CLIENT, *words], capture_output=True, text=True, check=False, env=os.environ
        )
    assert ran.returncode == 0, ran.stderr
    *events, kept = ran.stdout.splitlines()
    return [json.loads(line) for line in events if line.startswith("{")], kept  # beside what is logged


def test_a_kind_is_its_room_and_one_line(tmp_path: Path) -> None:
    lines = [line for path in TOY.glob("*.py") for line in path.read_text().splitlines() if line.strip()]
    assert len([line for line in lines if not line.startswith(("from ", "import "))]) <= LONGEST
    job = 'name = "square"\nkind = "toy"\n[need]\npeers = 1\n[toy]\nnumber = 12\n'
    parts = ("SECTION", "ToyRecord", "ToySquared", "ToyDriver")
    told, kept = events_of(tmp_path, TOY, parts, job, "otter")
    assert [event["square"] for event in told if event["event"] == "toy_squared"] == [144]
    assert told[-1]["event"] == "job_finished"
    assert (told[-1]["receipts"], told[-1]["peers"]) == (1, ["otter"])
    assert json.loads(Path(kept, "job.json").read_text())["square"] == 144
