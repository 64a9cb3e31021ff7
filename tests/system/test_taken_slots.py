"""Two jobs at once on a swarm of three: one waits for the other; and what a dead job, a hog and /out come to."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator

import pytest

from axonp2p.sandbox.child import why_no_sandbox
from tests.system.person import Person, running_below
from tests.system.small_job import TASK, write_job

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

WRITES = TASK.replace(
    "        time.sleep(PAUSE)\n",
    """
        import os
        self.steps = getattr(self, "steps", 0) + 1
        with open("/out/steps.csv", "a") as file:
            file.write(f"{self.steps}\\n")
        os.makedirs(os.environ["AXON_OUT"] + "/deep", exist_ok=True)
        open(os.environ["AXON_OUT"] + "/deep/last.txt", "w").write(str(self.steps))
        if not os.path.lexists("/out/passwd"):
            os.symlink("/etc/passwd", "/out/passwd")
        print("step", self.steps)
""",
)
HOG = TASK.replace(
    "        time.sleep(PAUSE)\n",
    """
        self.kept = getattr(self, "kept", [])
        self.kept.append(torch.ones(50_000_000))
""",
)


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """Somebody whose swarm of three peers is up."""
    somebody = Person(tmp_path_factory.mktemp("person"))
    somebody.ask("swarm", "up", "-n", "3")
    write_job(somebody.folder / "first", peers=3, least=3, rounds=8, pause=0.3)
    write_job(somebody.folder / "second", peers=2, least=2, rounds=1)
    yield somebody
    somebody.run("swarm", "down")
    assert running_below(somebody.folder) == []


class Begun:
    """`axon` at work on a new job, in the background."""

    def __init__(self, person: Person, *words: str) -> None:
        self._jobs = person.home / "jobs"
        self._before = set(self._jobs.glob("*"))
        self.process = person.begin(*words)

    def comes_to(self, event: str) -> str:
        """The job's id, once it has told that event."""
        until = time.monotonic() + 120
        while time.monotonic() < until and self.process.poll() is None:
            for job in set(self._jobs.glob("*")) - self._before:
                events = job / "events.jsonl"
                if events.exists() and f'"event":"{event}"' in events.read_text():
                    return job.name
            time.sleep(0.2)
        raise AssertionError(f"no job has come to {event}")

    def end(self, code: int = 0) -> str:
        """What it has printed when it has ended with that exit code."""
        told = self.process.communicate(timeout=500)[0]
        assert self.process.returncode == code, told
        return told

    def stop(self) -> str:
        """Ctrl-C; what it has printed."""
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=100)[0]


def record(person: Person, job: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((person.home / "jobs" / job / "job.json").read_text())
    return found


def test_what_a_task_writes_into_out_comes_home_from_each_peer_and_from_no_redo(person: Person) -> None:
    write_job(person.folder / "writes", peers=2, rounds=3, task=WRITES, train="checks = 0.5\n")
    begun = Begun(person, "submit", "writes")
    job = begun.comes_to("bundle_sent")
    assert "in out/" in begun.end()
    out = person.home / "jobs" / job / "out"
    files = {str(path.relative_to(out)): path.read_text() for path in out.rglob("*") if path.is_file()}
    assert len(files) == 4
    for peer in {name.partition("/")[0] for name in files}:
        # Steps that were taken again have counted, written and printed elsewhere.
        assert files[f"{peer}/steps.csv"].split() == [str(number) for number in range(1, 16)]
        assert files[f"{peer}/deep/last.txt"] == "15"
        log = (out.parent / "logs" / f"{peer}.log").read_text()
        assert [line for line in log.splitlines() if line.startswith("step ")] == [f"step {n}" for n in range(1, 16)]
    listed = person.ask("logs", job)["files"]
    assert {f"{peer}/{name}" for peer, names in listed.items() for name in names} == set(files)
    person.run("fetch", job, "-o", "fetched")
    assert len(list((person.folder / "fetched" / "out").rglob("steps.csv"))) == 2


def test_a_second_job_waits_for_the_first_and_then_does_its_own(person: Person) -> None:
    first = Begun(person, "submit", "first")
    holder = first.comes_to("bundle_sent")
    refused = person.run("submit", "second", code=8)
    assert "3 by your own job " + holder + ", which runs" in refused.stderr
    assert f"axon watch {holder}" in refused.stderr
    told = Begun(person, "submit", "second", "--wait", "10min").end()
    assert "waits up to 10 min" in told
    assert told.count(" fit this job") <= 4  # what it sees again and again is told once
    first.end()


def test_ctrl_c_leaves_a_job_that_waits(person: Person) -> None:
    first = Begun(person, "submit", "first")
    first.comes_to("bundle_sent")
    waits = Begun(person, "submit", "second", "--wait", "10min")
    job = waits.comes_to("peers_awaited")
    assert record(person, job)["waits_for"] == ["2 more peers"]
    told = waits.stop()
    assert f"axon resume {job}" in told
    assert record(person, job)["state"] == "paused"
    first.stop()


def test_a_dead_job_is_named_and_its_slots_come_back_when_it_is_cancelled(person: Person) -> None:
    dead = Begun(person, "submit", "first")
    job = dead.comes_to("bundle_sent")
    dead.process.kill()
    dead.process.wait()
    refused = person.run("submit", "second", code=8)
    assert f"3 by your own job {job}, whose program is dead" in refused.stderr
    assert f"axon cancel {job} gives its slots back at once" in refused.stderr
    person.run("cancel", job)
    again = Begun(person, "submit", "second", "--wait", "1min")
    again.comes_to("bundle_sent")
    again.stop()


def test_a_task_that_takes_too_much_memory_is_told_so_after_two_peers(person: Person) -> None:
    write_job(person.folder / "hog", peers=3, rounds=4, task=HOG, wait="5 min")
    told = Begun(person, "submit", "hog").end(code=1)
    assert "waits up to" not in told
    if "Cannot allocate memory" in told:  # the kernel has refused it before the daemon's next look at the worker
        assert "fix: a smaller batch under [train], a smaller model, or more memory under [need]" in told
        return
    assert "error AX-103" in told
    assert "the task went over its limit of memory; 1 more peer too" in told
    assert 'memory = "2 GiB" under [need]' in told
