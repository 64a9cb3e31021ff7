"""What the doctor makes of what it found."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from axonp2p.findings import Check, FindingState, broken, report_text
from axonp2p.jobs.kinds import KINDS
from axonp2p.sandbox.attacks.attack import Tried
from axonp2p.table.tracker_checks import TrackerFacts
from peer_daemon.doctor.checks import checks_of
from peer_daemon.doctor.facts import ContainFacts, MachineFacts, PeerFacts, PortFacts, Trouble

pytestmark = pytest.mark.usefixtures("only_train")

HELD = Tried("home-folder", "tries to look into the home folder", held=True, said="No such file or directory")
BROKEN = Tried("shadow", "tries to read the passwords", held=False, said="read 40 bytes of /etc/shadow")
MACHINE = MachineFacts(
    home="/h",
    versions={"python": "3.11.7", "torch": "2.13.0"},
    key=Trouble(),
    settings=Trouble(),
    disk_free_mb=50_000,
    keep_disk_free_mb=1024,
    memory_mb=16_000,
    cores=4,
)
CONTAIN = ContainFacts(
    no_sandbox="", holds="held", seccomp=Trouble(), landlock=6, priority="idle", no_idle="", attempts=[HELD, HELD]
)
FACTS = PeerFacts(
    machine=MACHINE,
    contain=CONTAIN,
    senses=[("CPU", True, "read"), ("heat", False, "no sensor is found")],
    ports=PortFacts("0.0.0.0:7071", "127.0.0.1:7072"),
    trackers=[TrackerFacts("lab:7070", configured=True, rtt_s=0.003, clock_off_s=0.1)],
)


def found(part: str = "", *, verbose: bool = False, **changes: Any) -> list[Check]:
    """The checks of `FACTS` but for these in one part of them."""
    facts = dataclasses.replace(FACTS, **{part: dataclasses.replace(getattr(FACTS, part), **changes)} if part else {})
    return checks_of(facts, verbose=verbose)


def wrong(checks: list[Check]) -> list[Check]:
    return [check for check in checks if check.state is not FindingState.OK]


def test_what_the_priority_of_jobs_means_is_said() -> None:
    for priority, words in (("idle", "no other program wants to"), ("low", "a tenth as often"), ("normal", "settings")):
        assert words in report_text(found("contain", priority=priority))


def test_a_card_that_is_lent_and_computes_nothing_is_a_failure() -> None:
    (one,) = wrong(found("contain", no_cuda="CUDA does not start (error 304 of cuInit)"))
    assert one.state is FindingState.FAIL
    assert one.text == "no job can compute on the card: CUDA does not start (error 304 of cuInit)"
    assert one.fix.startswith("gpu = false")


def test_a_sound_machine_has_nothing_wrong() -> None:
    text = report_text(found())
    assert text.endswith("All is well.")
    assert "no file, program, network or right of yours" in text
    assert "(2 attacks)" in text
    assert "heat is not told here: no sensor is found" in text


@pytest.mark.parametrize(
    ("part", "changes", "state", "code", "said"),
    [
        (
            "machine",
            {"key": Trouble("others can read it", "chmod 600")},
            FindingState.FAIL,
            "AX-412",
            "others can read it",
        ),
        ("machine", {"settings": Trouble("hours: what?", "hours = []")}, FindingState.FAIL, "AX-601", "hours: what?"),
        ("machine", {"disk_free_mb": 100}, FindingState.FAIL, "", "no job begins below 1 GiB"),
        ("machine", {"memory_mb": 1000}, FindingState.WARN, "", "few jobs fit"),
        ("machine", {"versions": {"python": "3.11", "torch": ""}}, FindingState.WARN, "", "missing: torch"),
        ("contain", {"landlock": 0}, FindingState.WARN, "", "no Landlock"),
        ("contain", {"seccomp": Trouble("no libseccomp", "apt")}, FindingState.FAIL, "AX-605", "no libseccomp"),
        (
            "contain",
            {"no_idle": "Operation not permitted"},
            FindingState.FAIL,
            "",
            "cannot be put behind your programs",
        ),
        ("ports", {"tcp": "Address already in use"}, FindingState.FAIL, "AX-602", "Address already in use"),
        ("ports", {"udp": "Address already in use"}, FindingState.WARN, "", "takes another port"),
        ("ports", {"page_port": "Address already in use"}, FindingState.WARN, "", "takes another port"),
        ("ports", {"running": "otter runs", "reachable": "no"}, FindingState.WARN, "", "others cannot call"),
    ],
)
def test_each_trouble_is_one_line_with_what_mends_it(
    part: str, changes: dict[str, Any], state: FindingState, code: str, said: str
) -> None:
    (one,) = wrong(found(part, **changes))
    assert (one.state, one.code) == (state, code)
    assert said in one.text
    assert one.fix


def test_no_sandbox_names_the_command_that_mends_it() -> None:
    (one,) = wrong(
        found("contain", no_sandbox="bubblewrap is not there; to fix it: apt install bubblewrap", attempts=[])
    )
    assert one.code == "AX-605"
    assert "bubblewrap is not there" in one.text
    assert one.fix == "apt install bubblewrap"


def test_an_attack_that_got_through_is_told_and_nobody_lends_such_a_machine() -> None:
    (one,) = wrong(found("contain", attempts=[HELD, BROKEN]))
    assert one.state is FindingState.FAIL
    assert "1 of 2 attacks" in one.text
    assert "tries to read the passwords: read 40 bytes of /etc/shadow" in one.text
    assert "do not lend this machine" in one.fix


def test_verbose_has_a_line_for_each_attack_and_counts_each_failure_once() -> None:
    checks = found("contain", verbose=True, attempts=[HELD, BROKEN])
    assert broken(checks) == 1
    assert {"wall, home-folder", "wall, shadow"} <= {check.name for check in checks}


@pytest.fixture
def toy(only_train: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second kind, which executes programs of its bundle."""
    monkeypatch.setitem(KINDS, "toy", dataclasses.replace(KINDS["train"], name="toy", executes=True))


@pytest.mark.usefixtures("toy")
def test_the_kinds_that_run_here_are_told_and_why_the_others_do_not() -> None:
    assert "jobs of these kinds run here: train, toy" in report_text(found())
    text = report_text(found("machine", kinds=("train",)))
    assert "jobs of these kinds run here: train\n" in text
    assert "no toy job runs here: the owner allows train only" in text


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(("chosen", "state"), [((), FindingState.WARN), (("toy",), FindingState.FAIL)])
def test_a_kind_that_the_wall_cannot_hold_does_not_run_here(chosen: tuple[str, ...], state: FindingState) -> None:
    machine = dataclasses.replace(MACHINE, kinds=chosen)
    contain = dataclasses.replace(CONTAIN, landlock=0)
    checks = checks_of(dataclasses.replace(FACTS, machine=machine, contain=contain))
    (one,) = [check for check in wrong(checks) if check.name == "kinds"]
    assert (one.state, one.text.startswith("no toy job runs here: this kernel has no Landlock")) == (state, True)
    assert one.fix


def test_a_dead_tracker_fails_and_a_learnt_one_is_only_told_of() -> None:
    dead = TrackerFacts("b:1", configured=True, trouble="connection refused")
    learnt = dataclasses.replace(dead, configured=False)
    (one,) = wrong(checks_of(dataclasses.replace(FACTS, trackers=[*FACTS.trackers, dead])))
    assert (one.state, one.code) == (FindingState.FAIL, "AX-302")
    (one,) = wrong(checks_of(dataclasses.replace(FACTS, trackers=[*FACTS.trackers, learnt])))
    assert one.state is FindingState.WARN
    assert wrong(checks_of(dataclasses.replace(FACTS, trackers=[]))) == []


def test_a_wrong_clock_is_named() -> None:
    off = TrackerFacts("lab:7070", configured=True, clock_off_s=60.0)
    (one,) = wrong(checks_of(dataclasses.replace(FACTS, trackers=[off])))
    assert one.code == "AX-411"


def test_a_peer_that_only_relays_reach_is_sound() -> None:
    checks = found("ports", running="otter runs", reachable="no", relays=("192.0.2.1:7070",))
    assert wrong(checks) == []
    assert "reach it through 192.0.2.1:7070" in report_text(checks)
