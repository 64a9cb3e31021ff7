"""`axon peers` and `axon doctor` beside a swarm of three trackers, of which some die and one belongs to nobody."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from axonp2p.sandbox.child import why_no_sandbox
from tests.laboratory.fork_server import fork_server
from tests.system.person import Person, running_below

no_sandbox = why_no_sandbox()
pytestmark = [pytest.mark.sandbox, pytest.mark.skipif(bool(no_sandbox), reason=no_sandbox or "a sandbox can be had")]

PATIENCE_S = 60.0


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    """Somebody whose swarm of three trackers and two peers is up."""
    somebody = Person(tmp_path)
    answer = somebody.ask("swarm", "up", "-n", "2", "--trackers", "3")
    assert len(answer["trackers"]) == 3
    assert answer["peers"] == ["otter", "heron"]
    yield somebody
    somebody.run("swarm", "down")
    assert running_below(somebody.folder) == []


def until(ask: Callable[[], dict[str, Any]], true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first answer that is as it should be."""
    deadline = time.monotonic() + PATIENCE_S
    while not true(answer := ask()):
        assert time.monotonic() < deadline, answer
        time.sleep(0.5)
    return answer


def kill(person: Person, name: str) -> None:
    (pid,) = [one["pid"] for one in person.ask("swarm", "status")["processes"] if one["name"] == name]
    os.kill(pid, signal.SIGKILL)


def look_at_peers(person: Person, *words: str) -> Callable[[], dict[str, Any]]:
    return lambda: person.ask("peers", *words)


def failures(person: Person, *words: str) -> dict[str, str]:
    """What the doctor says is broken, by code; it must end with 1 when there is something."""
    done = fork_server().run("client_cli.main", ["doctor", "--json", *words], PATIENCE_S, person.environment)
    answer = json.loads(done.stdout)
    failed = {check["code"]: check["text"] for check in answer["checks"] if check["state"] == "fail"}
    assert answer["ok"] == (not failed)
    assert done.returncode == (1 if failed else 0)
    return failed


def test_everything_has_its_line_until_it_dies(person: Person) -> None:
    status = person.ask("swarm", "status")
    names = ["tracker", "tracker-2", "tracker-3", "otter", "heron"]
    assert [process["name"] for process in status["processes"]] == names
    addresses = [f"tracker {url.removeprefix('https://').partition('#')[0]}" for url in status["trackers"]]

    def all_have_all(seen: dict[str, Any]) -> bool:
        return len(seen["peers"]) == 2 and all(set(addresses) <= set(peer["sources"]) for peer in seen["peers"])

    seen = until(look_at_peers(person), all_have_all)
    assert {peer["state"] for peer in seen["peers"]} == {"free"}
    assert {peer["trust"] for peer in seen["peers"]} == {"new"}
    assert all(peer["rtt_s"] > 0 and 0 <= peer["age_s"] < 600 for peer in seen["peers"])
    assert failures(person) == {}
    assert "none meets this need" in person.run("peers", "--need", "cores=4000").stdout
    assert "AX-901" in person.run("peers", "--need", "cors=2", code=9).stderr

    kill(person, "tracker-2")
    assert addresses[1].removeprefix("tracker ") in failures(person)["AX-302"]
    text = person.run("peers").stdout
    assert "otter" in text
    assert "connection refused" in text

    kill(person, "otter")
    seen = until(look_at_peers(person), lambda seen: {"silent"} <= {peer["state"] for peer in seen["peers"]})
    assert {peer["name"]: peer["state"] for peer in seen["peers"]} == {"otter": "silent", "heron": "free"}

    kill(person, "tracker")
    kill(person, "tracker-3")
    assert "AX-302" in failures(person)


def test_a_tracker_that_sees_another_swarm_is_found(person: Person) -> None:
    home = person.folder / "lonely"
    home.mkdir()
    with (person.folder / "lonely.log").open("wb") as log:
        lonely = fork_server().start("tracker.main", ["run", "--home", str(home), "--listen", "127.0.0.1:0"], log)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not (home / "address").exists():
            assert time.monotonic() < deadline
            assert lonely.poll() is None
            time.sleep(0.05)
        ours = person.ask("swarm", "status")["trackers"][0]
        theirs = (home / "address").read_text().strip()
        split = failures(person, "--tracker", ours, "--tracker", theirs)
        assert split.keys() == {"AX-413"}
        assert "2 peers (heron, otter)" in split["AX-413"]
    finally:
        lonely.terminate()
        lonely.wait()
