"""The service's unit, read by systemd, and where it lies."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from axonp2p.errors import SettingsError
from peer_daemon.service.manager import install, remove, unit_path
from peer_daemon.service.systemd import NAME, text

HOME = '/home/o/100% "mine"/$HOME/peer'
UNIT = text("/opt/my env/bin/python3", HOME)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here to read it")
def test_systemd_finds_nothing_wrong(tmp_path):
    # It looks whether the program is there.
    program = tmp_path / "my env" / "python"
    program.parent.mkdir()
    program.symlink_to("/bin/true")
    unit = tmp_path / NAME
    unit.write_text(text(str(program), HOME))
    read = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(unit)],
        env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (read.returncode, read.stderr) == (0, "")


def test_systemd_reads_the_words_as_they_are_meant():
    (line,) = [line for line in UNIT.splitlines() if line.startswith("ExecStart=")]
    assert line == (
        'ExecStart="/opt/my env/bin/python3" "-P" "-m" "peer_daemon.main" "run" "--home"'
        ' "/home/o/100%% \\"mine\\"/$$HOME/peer"'
    )


@pytest.mark.parametrize("forbidden", ["NoNewPrivileges", "ProtectHome", "RestrictNamespaces", "SystemCallFilter"])
def test_the_unit_leaves_the_sandbox_what_it_needs(forbidden):
    assert not any(line.startswith(f"{forbidden}=") for line in UNIT.splitlines())


def test_a_system_without_systemd_is_told_what_to_do(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(SettingsError) as refused:
        unit_path()
    assert refused.value.fix.endswith("axon-peer run")


def test_the_file_is_written_once_and_removed_once(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert unit_path() == tmp_path / ".config/systemd/user/axon-peer.service"
    assert [install(unit_path(), UNIT), install(unit_path(), UNIT)] == [True, False]
    assert unit_path().read_text() == UNIT
    assert [remove(unit_path()), remove(unit_path())] == [True, False]
