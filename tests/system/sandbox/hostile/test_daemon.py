"""A real daemon with two slots: hostile jobs on one of them, while somebody else's job on the other one finishes."""

from __future__ import annotations

import asyncio
import itertools
import textwrap
from pathlib import Path

import pytest

from peer_daemon.control import caller
from tests.system.person import Person
from tests.system.processes import Processes
from tests.system.small_job import TASK, write_job

pytestmark = pytest.mark.timeout(300)

HELD_AT_MOST = ("prlimit", "--nproc=2000:2000")
"""Should the wall fall, the machine that the test runs on stands; workers that are no root inherit it."""

LOG_FLOOD = """
        if os.fork() == 0:
            while True:
                os.write(2, bytes(2**16))
"""
HOSTILE = {
    "processes": """
        while True:
            try:
                os.fork()
            except OSError:
                pass
    """,
    "memory": """
        for _ in range(12):
            if os.fork() == 0:
                break
        held = os.urandom(200 * 2**20)
        time.sleep(600)
    """,
}
"""Limit -> what a step does to go over it, while a child floods the log."""

SAYS = ("processes and threads that are allowed", "MiB of memory where 800 MiB are allowed")
"""What the client is told of their ends, in the same order."""


def hostile_task(step: str) -> str:
    does = textwrap.indent(textwrap.dedent(LOG_FLOOD) + textwrap.dedent(step), " " * 8)
    return "import os\n" + TASK.replace("        time.sleep(PAUSE)\n", does)


@pytest.fixture
def people(tmp_path: Path) -> tuple[Person, Person]:
    for name in ("peaceful", "hostile"):
        (tmp_path / name).mkdir()
    return Person(tmp_path / "peaceful"), Person(tmp_path / "hostile")


def test_the_daemon_and_the_job_beside_do_not_notice(tmp_path: Path, people: tuple[Person, Person]) -> None:
    peaceful, hostile = people
    (tmp_path / "otter").mkdir()
    (tmp_path / "otter" / "config.toml").write_text("[peer]\nslots = 2\n")
    write_job(peaceful.folder / "line", peers=1, rounds=40, pause=0.05)
    for limit, step in HOSTILE.items():
        write_job(hostile.folder / limit, peers=1, rounds=2, task=hostile_task(step))
    ends = []
    with Processes(tmp_path) as processes:
        processes.start_peers("otter", inside=HELD_AT_MOST)
        job = peaceful.begin("submit", "line", "--tracker", processes.tracker)
        for limit in itertools.cycle(HOSTILE):
            said, _ = hostile.begin("submit", limit, "--tracker", processes.tracker).communicate(timeout=120)
            ends.append(said)
            if job.poll() is not None:
                break
        said, _ = job.communicate()
        assert job.returncode == 0, said
        assert "Done in" in said
        assert asyncio.run(caller.ask_status(tmp_path / "otter")).state == "ready"
        assert "Traceback" not in processes.output("otter")
    assert len(ends) >= len(HOSTILE), "they were not beside it for long enough"
    for said, limit in zip(ends, itertools.cycle(SAYS), strict=False):
        assert limit in said
