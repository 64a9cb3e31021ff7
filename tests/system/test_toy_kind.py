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
LINE = (
    '        *[JobKind("toy", *(f"axonp2p.kinds.toy.kind:{part}"'
    ' for part in ("SECTION", "ToyRecord", "ToySquared", "ToyDriver")), "axonp2p.kinds.toy.worker")],\n'
)
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


def house_with_the_toy(place: Path) -> Path:
    """A copy of all programs with one room and one line more, and the hash of its messages."""
    for room in ("axonp2p", "peer_daemon", "client_cli", "tracker"):
        shutil.copytree(HOUSE / room, place / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(TOY, place / "axonp2p" / "kinds" / "toy", ignore=shutil.ignore_patterns("__pycache__"))
    registry = place / "axonp2p" / "jobs" / "kinds.py"
    before, place_of_kinds, after = registry.read_text().partition("    for kind in (\n")
    registry.write_text(before + place_of_kinds + LINE + after)
    schema = place / "axonp2p" / "wire" / "schema.py"  # which `scripts/write_messages_page` writes
    schema.write_text(schema.read_text().replace("SCHEMAS: Final = {", f'SCHEMAS: Final = {{"toy": "{16 * "7"}",'))
    return place


def test_a_kind_is_its_room_and_one_line(tmp_path: Path) -> None:
    house = house_with_the_toy(tmp_path / "house")
    lines = [line for path in TOY.glob("*.py") for line in path.read_text().splitlines() if line.strip()]
    assert len([line for line in lines if not line.startswith(("from ", "import "))]) <= LONGEST
    inside = ["env", f"--chdir={house}", f"PYTHONPATH={house}"]
    folder = tmp_path / "square"
    folder.mkdir()
    (folder / "job.toml").write_text('name = "square"\nkind = "toy"\n[need]\npeers = 1\n[toy]\nnumber = 12\n')
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", inside=inside)
        words = [processes.tracker, str(tmp_path / "client"), str(folder)]
        ran = subprocess.run(
            [*inside, sys.executable, "-c", CLIENT, *words], capture_output=True, text=True, check=False, env=os.environ
        )
    assert ran.returncode == 0, ran.stderr
    *events, kept = ran.stdout.splitlines()
    told = [json.loads(line) for line in events if line.startswith("{")]  # beside what is logged
    assert [event["square"] for event in told if event["event"] == "toy_squared"] == [144]
    assert told[-1]["event"] == "job_finished"
    assert (told[-1]["receipts"], told[-1]["peers"]) == (1, ["otter"])
    assert json.loads(Path(kept, "job.json").read_text())["square"] == 144
