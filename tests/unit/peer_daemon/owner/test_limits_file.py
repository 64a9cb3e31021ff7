"""The owner changes a limit; their file keeps everything else that they wrote into it."""

from __future__ import annotations

import pytest

from axonp2p.errors import SettingsError
from axonp2p.settings import PeerSettings, UseSettings, read_settings
from peer_daemon.control.status import LimitsAsked
from peer_daemon.lending.offer import MeasuredMachine
from peer_daemon.owner.limits_file import change_limits, with_limits

THEIRS = """\
# my machine
[client]
trackers = []

[peer]
name = "otter"   # the children chose it
cores = 1        # was 2
hours = [
    "Mon-Fri 18:00-08:00",  # after work
]

[peer.in-use]
# while I play
run = false
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "config.toml").write_text(THEIRS)
    return tmp_path / "config.toml"


def test_only_the_line_that_was_meant_changes(config):
    settings = read_settings(config.parent, {}).peer
    changed = change_limits(config.parent, settings, LimitsAsked(cores=2, memory_mb=4096))
    assert (changed.cores, changed.memory_mb) == (2, 4096)
    text = config.read_text()
    assert "cores = 2        # was 2" in text
    assert set(THEIRS.splitlines()) - set(text.splitlines()) == {"cores = 1        # was 2"}
    assert read_settings(config.parent, {}).peer == changed


def test_without_a_file_one_is_made(tmp_path):
    changed = change_limits(tmp_path, PeerSettings(), LimitsAsked(on_battery=True, hours=["Sat,Sun"]))
    assert read_settings(tmp_path, {}).peer == changed == PeerSettings(on_battery=True, hours=["Sat,Sun"])


def test_others_cpu_holds_whether_somebody_uses_the_machine_or_not(config):
    settings = read_settings(config.parent, {}).peer
    changed = change_limits(config.parent, settings, LimitsAsked(others_cpu=40))
    assert (changed.in_use, changed.not_in_use) == (UseSettings(run=False, others_cpu=40), UseSettings(others_cpu=40))
    assert read_settings(config.parent, {}).peer == changed
    assert "# while I play\nrun = false\n" in config.read_text()


def test_what_a_flag_said_stays_in_force_and_out_of_the_file(config):
    running = PeerSettings(name="otter", slots=3, hours=["Sat"])
    changed = change_limits(config.parent, running, LimitsAsked(disk_mb=100))
    assert changed == PeerSettings(name="otter", slots=3, hours=["Sat"], disk_mb=100)
    assert "slots" not in config.read_text()


@pytest.mark.parametrize(
    "asked",
    [
        LimitsAsked(cores=-1),
        LimitsAsked(memory_mb=-5),
        LimitsAsked(memory_mb=2**40),
        LimitsAsked(disk_mb=0),
        LimitsAsked(slots=0),
        LimitsAsked(others_cpu=0),
        LimitsAsked(others_cpu=101),
        LimitsAsked(hours=["Mon-Fri 25:00-26:00"]),
        LimitsAsked(cores=2, hours=["sometimes"]),
    ],
)
def test_what_cannot_be_meant_never_gets_into_the_file(config, asked):
    with pytest.raises(SettingsError) as raised:
        change_limits(config.parent, read_settings(config.parent, {}).peer, asked)
    assert raised.value.fix
    assert config.read_text() == THEIRS


@pytest.mark.parametrize("content", [b"[peer\n", b"[peer]\ncors = 1\n", b'[peer]\ncores = "two"\n', b"\xff\xfe"])
def test_a_file_that_is_wrong_already_is_left_alone(tmp_path, content):
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(SettingsError, match=r"config\.toml"):
        change_limits(tmp_path, PeerSettings(), LimitsAsked(cores=1))
    assert (tmp_path / "config.toml").read_bytes() == content


@pytest.mark.parametrize("content", ["peer.cores = 1\n", "peer = { cores = 1 }\n", "[peer]\ncores=1\r\n[client]\r\n"])
def test_however_they_write_it(tmp_path, content):
    (tmp_path / "config.toml").write_text(content, newline="")
    changed = change_limits(tmp_path, PeerSettings(cores=1), LimitsAsked(cores=2, others_cpu=50))
    assert read_settings(tmp_path, {}).peer == changed


def test_a_link_to_where_they_keep_such_files_stays_one(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "dotfiles.toml").write_text(THEIRS)
    (home / "config.toml").symlink_to(tmp_path / "dotfiles.toml")
    change_limits(home, PeerSettings(), LimitsAsked(slots=2))
    assert (home / "config.toml").is_symlink()
    assert "slots = 2" in (tmp_path / "dotfiles.toml").read_text()


def test_a_home_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(SettingsError, match="cannot be written") as raised:
        change_limits(tmp_path / "gone", PeerSettings(), LimitsAsked(cores=1))
    assert raised.value.cause
    assert "gone" in raised.value.fix


def test_nothing_asked_changes_nothing(config):
    assert change_limits(config.parent, PeerSettings(), LimitsAsked()) == PeerSettings()
    assert config.read_text() == THEIRS
    assert with_limits(PeerSettings(), LimitsAsked()) == PeerSettings()


MACHINE = MeasuredMachine(cores=2, memory_mb=4096, disk_mb=9000, gflops=0, python="3.11", packages={})


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (LimitsAsked(cores=9), "cores: this computer has 2, not 9"),
        (LimitsAsked(in_use_cores=3), "cores: this computer has 2, not 3"),
        (LimitsAsked(memory_mb=8192), "memory: this computer has 4 GiB, not 8 GiB"),
        (LimitsAsked(disk_mb=20480), "disk: free here: 8.78 GiB, not 20 GiB"),
    ],
)
def test_more_than_the_machine_has_is_refused_as_setup_does(config, asked, message):
    with pytest.raises(SettingsError) as raised:
        change_limits(config.parent, read_settings(config.parent, {}).peer, asked, MACHINE)
    assert raised.value.message == message
    assert config.read_text() == THEIRS


def test_what_holds_while_somebody_uses_the_machine(config):
    settings = read_settings(config.parent, {}).peer
    asked = LimitsAsked(in_use_run=True, in_use_cores=1, yield_to=["blender", "My Game"])
    changed = change_limits(config.parent, settings, asked, MACHINE)
    assert (changed.in_use, changed.yield_to) == (UseSettings(cores=1), ["blender", "My Game"])
    assert read_settings(config.parent, {}).peer == changed
