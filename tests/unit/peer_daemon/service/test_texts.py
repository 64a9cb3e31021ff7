"""The service's texts, each read by what reads such texts."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import PurePath

import pytest

from axonp2p.errors import SettingsError
from peer_daemon.service import launchd, systemd, task_scheduler
from peer_daemon.service.facts import InstallationFacts
from peer_daemon.service.manager import install, remove
from peer_daemon.service.plan import TEXTS, plan_for

FACTS = InstallationFacts(python="/opt/my env/bin/python3", home='/home/o/100% "mine"/$HOME/peer', user="otter")
COMMAND = ["/opt/my env/bin/python3", "-P", "-m", "peer_daemon.main", "run", "--home", FACTS.home]
TASK = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here to read it")
def test_systemd_finds_nothing_wrong(tmp_path):
    # It looks whether the program is there.
    program = tmp_path / "my env" / "python"
    program.parent.mkdir()
    program.symlink_to("/bin/true")
    unit = tmp_path / systemd.NAME
    unit.write_text(systemd.text(InstallationFacts(str(program), FACTS.home, "otter")))
    read = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(unit)],
        env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (read.returncode, read.stderr) == (0, "")


def test_systemd_reads_the_words_as_they_are_meant():
    (line,) = [line for line in systemd.text(FACTS).splitlines() if line.startswith("ExecStart=")]
    assert line == (
        'ExecStart="/opt/my env/bin/python3" "-P" "-m" "peer_daemon.main" "run" "--home"'
        ' "/home/o/100%% \\"mine\\"/$$HOME/peer"'
    )


@pytest.mark.parametrize("forbidden", ["NoNewPrivileges", "ProtectHome", "RestrictNamespaces", "SystemCallFilter"])
def test_the_unit_leaves_the_sandbox_what_it_needs(forbidden):
    assert not any(line.startswith(f"{forbidden}=") for line in systemd.text(FACTS).splitlines())


def test_launchd():
    agent = plistlib.loads(launchd.text(FACTS).encode())
    assert agent["ProgramArguments"] == COMMAND
    assert agent["ProcessType"] == "Background"
    assert agent["LowPriorityIO"] is True
    assert agent["KeepAlive"] == {"SuccessfulExit": False}


def test_task_scheduler():
    facts = InstallationFacts(
        python="C:\\Program Files\\py&thon.exe", home="C:\\Users\\otter <1>\\peer", user="PC\\otter"
    )
    task = ElementTree.fromstring(task_scheduler.text(facts))
    assert task.findtext(f".//{TASK}LogonTrigger/{TASK}UserId") == "PC\\otter"
    assert int(task.findtext(f".//{TASK}Priority")) in (7, 8)
    assert task.findtext(f".//{TASK}Exec/{TASK}Command") == "C:\\Program Files\\py&thon.exe"
    assert task.findtext(f".//{TASK}Arguments") == '-P -m peer_daemon.main run --home "C:\\Users\\otter <1>\\peer"'
    assert [child.tag.removeprefix(TASK) for child in task] == [
        "RegistrationInfo",
        "Triggers",
        "Principals",
        "Settings",
        "Actions",
    ]


@pytest.mark.parametrize(
    ("system", "path"),
    [
        ("linux", "/h/.config/systemd/user/axon-peer.service"),
        ("darwin", "/h/Library/LaunchAgents/org.axonp2p.peer.plist"),
        ("win32", f"{FACTS.home}/axon-peer.xml"),
    ],
)
def test_each_system_has_its_place_and_its_commands(system, path):
    plan = plan_for(system, PurePath("/h"), 1000, FACTS)
    assert str(plan.path) == path
    assert plan.begin
    assert plan.end
    assert plan.late_end


def test_a_system_without_a_service_is_told():
    with pytest.raises(SettingsError):
        plan_for("plan9", PurePath("/h"), 1000, FACTS)


def test_the_file_is_written_once_and_removed_once(tmp_path):
    plan = plan_for("linux", tmp_path, 1000, FACTS)
    assert [install(plan), install(plan)] == [True, False]
    assert (tmp_path / ".config/systemd/user/axon-peer.service").read_text() == plan.text
    assert [remove(plan), remove(plan)] == [True, False]


@pytest.mark.parametrize("kind", TEXTS)
def test_each_text_can_be_printed(kind):
    assert TEXTS[kind](FACTS)
