"""`axon` as a new user meets it: a swarm, a job from the template, and everything that can be asked of it."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from safetensors.numpy import load_file

from axonp2p.sandbox.child import why_no_sandbox
from tests.system.person import AXON, Person, running_below

no_sandbox = why_no_sandbox()
pytestmark = [pytest.mark.sandbox, pytest.mark.skipif(bool(no_sandbox), reason=no_sandbox or "a sandbox can be had")]


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """Somebody whose swarm of two peers is up."""
    somebody = Person(tmp_path_factory.mktemp("person"))
    answer = somebody.ask("swarm", "up", "-n", "2")
    assert answer["peers"] == ["otter", "heron"]
    yield somebody
    somebody.run("swarm", "down")
    assert running_below(somebody.folder) == []


def test_a_new_user_gets_weights(person: Person) -> None:
    person.write_job("first")
    checked = person.ask("check", "first")
    assert checked["peers_found"] == 2
    assert checked["parameters"] > 0
    told = person.run("submit", "first").stdout
    assert "round=3/3 loss=" in told
    assert "accuracy" in told
    (job,) = [found for found in person.ask("jobs")["jobs"] if found["name"] == "first"]
    assert (job["state"], job["round"]) == ("finished", 3)
    assert f"axon fetch {job['id']} -o OUT" in told
    person.run("fetch", job["id"], "-o", "out")
    weights = load_file(person.folder / "out" / "model.safetensors")
    assert sum(array.size for array in weights.values()) == checked["parameters"]
    assert len((person.folder / "out" / "metrics.csv").read_text().splitlines()) == 4
    assert {path.name for path in (person.folder / "out" / "logs").iterdir()} == {"heron.log", "otter.log"}
    status = person.run("status", "first").stdout
    assert "finished" in status
    assert "otter" in status
    balances = {entry["name"]: entry for entry in person.ask("credits", job["id"])["balances"]}
    assert balances["otter"]["earned_flops"] + balances["heron"]["earned_flops"] == balances["you"]["owed_flops"] > 0
    assert balances["you"]["receipts"] == 6


def test_the_swarm_can_be_looked_at(person: Person) -> None:
    status = person.ask("swarm", "status")
    assert [process["name"] for process in status["processes"]] == ["tracker", "otter", "heron"]
    assert status["running"] == 3
    seen = person.ask("peers")["peers"]
    assert [peer["name"] for peer in seen] == ["heron", "otter"]
    assert all(peer["rtt_s"] > 0 for peer in seen)
    assert "otter" in person.run("peers").stdout
    for process in status["processes"]:
        assert "torch" not in Path(f"/proc/{process['pid']}/maps").read_text()


def test_a_second_swarm_in_the_same_home_is_refused_and_the_first_goes_on(person: Person) -> None:
    refused = person.run("swarm", "up", code=6)
    assert "error AX-606" in refused.stderr
    assert person.ask("swarm", "status")["running"] == 3


def test_json_is_one_object_and_nothing_else(person: Person) -> None:
    person.write_job("quiet")
    answer = person.ask("submit", "quiet")
    assert answer["state"] == "finished"
    assert answer["rounds"] == 3
    assert answer["receipts"] == 6
    assert set(answer["credits"]) == {"otter", "heron"}


def test_a_mistake_in_the_task_comes_back_as_the_users_own_traceback(person: Person) -> None:
    person.write_job("wrong")
    task = person.folder / "wrong" / "task.py"
    task.write_text(task.read_text().replace("(model(points), spirals)", "(model(points), spirls)"))
    told = [json.loads(person.run(word, "wrong", "--json", code=1).stderr)["error"] for word in ("check", "submit")]
    assert {error["code"] for error in told} == {"AX-102"}
    assert "NameError: name 'spirls' is not defined" in told[0]["cause"]
    assert told[0]["cause"] == told[1]["cause"]
    assert told[0]["fix"] == told[1]["fix"] == f"correct task.py, line {_line_of('spirls', task)}, in loss()"
    assert "otter" in told[1]["message"] or "heron" in told[1]["message"]


def _line_of(word: str, file: Path) -> int:
    return next(number for number, line in enumerate(file.read_text().splitlines(), 1) if word in line)


def test_the_bundle_is_the_working_directory_of_every_step_and_of_those_that_are_done_again(person: Person) -> None:
    person.write_job("opens", rounds="12", data='["count.txt"]', seed="0\nchecks = 0.5")
    folder = person.folder / "opens"
    (folder / "count.txt").write_text("2000")
    task = folder / "task.py"
    task.write_text(task.read_text().replace("count=2000", 'count=int(open("count.txt").read())'))
    assert person.ask("check", "opens")["unchecked"] == ""
    assert person.ask("submit", "opens")["state"] == "finished"
    (kept,) = person.home.glob("jobs/opens-*/events.jsonl")
    events = [json.loads(line) for line in kept.read_text().splitlines()]
    checked = [event["outcome"] for event in events if event["event"] == "work_checked"]
    assert set(checked) <= {"passed"}, "chance says how many there are; axon check has done some steps again"


@pytest.mark.parametrize(
    ("key", "value", "why", "tried"),
    [
        ("gpu-memory", '"8 GiB"', "has no GPU with 8192 MiB (2)", True),
        ("packages", '["no-such-package-9"]', "lacks no-such-package-9 (2)", False),
        ("memory", '"900 GiB"', "of the 921600 MiB memory needed", True),
    ],
)
def test_a_check_says_why_nobody_would_take_the_job(
    person: Person, key: str, value: str, why: str, tried: bool
) -> None:
    person.write_job(key, **{"cores": f"1\n{key} = {value}"} if key != "memory" else {"memory": value})
    told = person.run("check", key, code=8).stdout
    assert "has no mistake, but too few peers would take it now." in told
    assert why in told
    assert ("cannot be had here" in told) != tried
    assert ("no peer that was seen lends one with 8192 MiB" in told) == (key == "gpu-memory")
    refused = person.run("submit", key, code=8).stderr
    assert why in refused
    assert ("fix: without gpu-memory and gpu-capability under [need]" in refused) == (key == "gpu-memory")


def test_ctrl_c_without_a_terminal_leaves_the_job_to_be_resumed(person: Person) -> None:
    person.write_job("long", rounds="100")
    process = person.begin("submit", "long")
    assert process.stdout
    for line in process.stdout:
        if line.startswith("round=4/"):
            break
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 130, rest
    (job,) = [found for found in person.ask("jobs")["jobs"] if found["name"] == "long"]
    assert f"axon resume {job['id']}" in rest
    assert job["state"] == "paused"
    assert job["round"] >= 4
    answer = person.ask("resume", job["id"])
    assert answer["state"] == "finished"
    assert person.ask("status", job["id"])["round"] == 100


def test_ctrl_c_on_a_terminal_asks(person: Person) -> None:
    person.write_job("asked", rounds="5000")
    with Terminal(person, "submit", "asked") as terminal:
        terminal.wait_for("held-out accuracy")  # below the bar
        terminal.type("\x03")
        terminal.wait_for("cancel it; or carry on? (leave, stop, cancel, on)")
        terminal.type("on\r")
        terminal.forget()
        terminal.wait_for("ETA")
        terminal.type("\x03")
        terminal.wait_for("carry on?")
        terminal.type("cancel\r")
        terminal.wait_for("Cancelled asked-")
        assert terminal.exit_code() == 130
    (job,) = [found for found in person.ask("jobs")["jobs"] if found["name"] == "asked"]
    assert job["state"] == "cancelled"


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, person: Person, *words: str) -> None:
        self.seen = ""
        self._pid, self._file = pty.fork()
        if self._pid == 0:
            os.chdir(person.folder)
            os.execve(AXON, [AXON, *words], {**person.environment, "TERM": "xterm-256color"})

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._file)

    def type(self, text: str) -> None:
        os.write(self._file, text.encode())

    def forget(self) -> None:
        self.seen = ""

    def wait_for(self, text: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self._file], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"never showed {text!r}: {self.seen[-2000:]!r}"
            self.seen += os.read(self._file, 65536).decode(errors="replace")

    def exit_code(self) -> int:
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return os.waitstatus_to_exitcode(status)


# --- swarms that do not come up, or go down -------------------------------------------------------


def test_down_stops_all_of_it_and_may_be_said_twice(tmp_path: Path) -> None:
    somebody = Person(tmp_path)
    up = somebody.run("swarm", "up", "-n", "1")
    assert "axon swarm down" in up.stdout
    assert len([line for line in running_below(tmp_path) if ".main run " in line]) == 2
    assert somebody.ask("swarm", "down")["stopped"] == ["otter", "tracker"]
    assert running_below(tmp_path) == []
    assert somebody.ask("swarm", "down")["stopped"] == []
    assert somebody.ask("swarm", "status") == {"trackers": [], "processes": [], "running": 0}


def test_a_swarm_comes_up_again_where_one_was_killed(tmp_path: Path) -> None:
    somebody = Person(tmp_path)
    somebody.run("swarm", "up", "-n", "1")
    processes = [psutil.Process(process["pid"]) for process in somebody.ask("swarm", "status")["processes"]]
    for process in processes:
        process.kill()
    psutil.wait_procs(processes, 20)
    assert somebody.ask("swarm", "status")["running"] == 0
    somebody.run("swarm", "up", "-n", "1")
    assert somebody.ask("swarm", "status")["running"] == 2
    somebody.run("swarm", "down")


def test_a_taken_port_is_said_and_nothing_is_left_running(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        failed = Person(tmp_path).run("swarm", "up", "--port", port, code=6)
    assert "error AX-602" in failed.stderr
    assert port in failed.stderr
    assert failed.stderr.splitlines()[-1].startswith("fix: leave --port away")
    assert running_below(tmp_path) == []
    assert not (tmp_path / "home" / "swarm.json").exists()


def test_a_home_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    failed = Person(tmp_path).run("swarm", "up", code=9)
    assert "error AX-601" in failed.stderr


def test_interrupted_while_it_starts_it_leaves_nothing(tmp_path: Path) -> None:
    process = Person(tmp_path).begin("swarm", "up", "-n", "3")
    assert process.stdout
    assert "tracker" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert running_below(tmp_path) == []
