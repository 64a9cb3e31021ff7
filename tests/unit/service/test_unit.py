"""The units of our programs, read by systemd, and where they are."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import peer_daemon.unit
import tracker.service
from axonp2p.errors import (
    AlreadyRunning,
    KeyFileUnsafe,
    LogDamaged,
    NotInstalled,
    PortTaken,
    SandboxMissing,
    SettingsError,
    TrackerUnreachable,
    WrongSystem,
)
from axonp2p.service.manager import install, remove
from axonp2p.service.unit import NO_USE_TO_RESTART, Unit

HOME = Path('/home/o/100% "mine"/$HOME/peer')
PEER, TRACKER, SYSTEM = Unit("axon-peer"), Unit("axon-tracker"), Unit("axon-tracker", system=True)
TEXTS = {PEER: peer_daemon.unit.text, TRACKER: tracker.service.text, SYSTEM: tracker.service.text}
UNIT = peer_daemon.unit.text("/opt/my env/bin/python3", HOME, PEER)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here to read it")
@pytest.mark.parametrize("unit", TEXTS)
def test_systemd_finds_nothing_wrong(tmp_path: Path, unit: Unit) -> None:
    # It looks whether the program is there.
    program = tmp_path / "my env" / "python"
    program.parent.mkdir()
    program.symlink_to("/bin/true")
    file = tmp_path / unit.name
    file.write_text(TEXTS[unit](str(program), HOME, unit))
    read = subprocess.run(
        ["systemd-analyze", "verify", "--system" if unit.system else "--user", "--man=no", str(file)],
        env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    ours = [line for line in read.stderr.splitlines() if unit.name in line]
    assert (read.returncode, ours) == (0, [])


def test_systemd_reads_the_words_as_they_are_meant() -> None:
    (line,) = [line for line in UNIT.splitlines() if line.startswith("ExecStart=")]
    assert line == (
        'ExecStart="/opt/my env/bin/python3" "-P" "-m" "peer_daemon.main" "run" "--home"'
        ' "/home/o/100%% \\"mine\\"/$$HOME/peer"'
    )


@pytest.mark.parametrize("forbidden", ["NoNewPrivileges", "ProtectHome", "RestrictNamespaces", "SystemCallFilter"])
def test_the_unit_of_a_peer_leaves_the_sandbox_what_it_needs(forbidden: str) -> None:
    assert not any(line.startswith(f"{forbidden}=") for line in UNIT.splitlines())


@pytest.mark.parametrize(
    "error",
    [SettingsError, PortTaken, KeyFileUnsafe, AlreadyRunning, SandboxMissing, LogDamaged, NotInstalled, WrongSystem],
)
@pytest.mark.parametrize("unit", TEXTS)
def test_a_program_that_would_end_the_same_is_not_started_again(unit: Unit, error: type[SettingsError]) -> None:
    text = TEXTS[unit]("/bin/python3", HOME, unit)
    (line,) = [line for line in text.splitlines() if line.startswith("RestartPreventExitStatus=")]
    assert str(error.exit_code) in line.partition("=")[2].split()


def test_a_program_that_a_bug_or_the_network_ended_is_started_again() -> None:
    assert not {70, TrackerUnreachable.exit_code, 1} & {*NO_USE_TO_RESTART}


def test_a_service_of_the_machine_has_a_user_and_a_folder_of_its_own() -> None:
    text = tracker.service.text("/opt/axon/bin/python3", Path(tracker.service.SYSTEM_HOME), SYSTEM)
    assert "\nDynamicUser=yes\nStateDirectory=axon-tracker\n" in text
    assert '"--home" "/var/lib/axon-tracker"' in text
    assert "WantedBy=multi-user.target" in text
    assert SYSTEM.begin[-1] == ("systemctl", "enable", "--now", "axon-tracker.service")


def test_the_file_is_written_once_and_removed_once(tmp_path: Path) -> None:
    path = PEER.path(tmp_path)
    assert path == tmp_path / ".config/systemd/user/axon-peer.service"
    assert [install(path, UNIT), install(path, UNIT)] == [True, False]
    assert path.read_text() == UNIT
    assert [remove(path), remove(path)] == [True, False]
