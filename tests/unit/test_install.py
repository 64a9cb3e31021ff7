"""What `scripts/install` installs, and what it asks. The programs that it starts only tell how they were started."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent.parent
HERE = Path("/proc/driver/nvidia/version")
no_card_here = pytest.mark.skipif(HERE.exists(), reason="this machine has an NVIDIA card")
LINKED = ("sh", "cat", "cksum", "cut", "date", "dirname", "find", "grep", "rm", "sed", "sort", "tail", "uname", "xargs")
WITH_THE_NEEDED = ("bwrap", "chromium", "nft", "ip")


def program(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


class House:
    """A copy of the script, and programs that tell how they were started."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.asked = base / "asked"
        for name in ("axonp2p", "client_cli", "peer_daemon", "tracker", "scripts", "packaging", "programs"):
            (base / name).mkdir()
        shutil.copy(ROOT / "scripts" / "install", base / "scripts")
        shutil.copy(ROOT / "packaging" / "constraints.txt", base / "packaging")
        for name in ("setup.cfg", "pyproject.toml", "axonp2p/code.py"):
            (base / name).write_text("")
        for name in LINKED:
            found = shutil.which(name)
            assert found, name
            (base / "programs" / name).symlink_to(found)
        program(base / ".venv/bin/pip")
        program(base / ".venv/bin/python", f'case $2 in pip) echo "$@" >>{self.asked};; esac')
        for name in ("python3", *WITH_THE_NEEDED):
            program(base / "programs" / name)
        for name in ("apt-get", "sudo"):
            program(base / "programs" / name, f'echo {name} "$@" >>{self.asked}')
        program(base / "programs/id", "echo 1000")

    def without(self, *names: str) -> House:
        for name in names:
            (self.base / "programs" / name).unlink()
        return self

    def install(self, *options: str) -> tuple[list[str], str]:
        """What pip and others were told, and what a person saw, without a terminal."""
        done = subprocess.run(
            self._command(options), env=self._environment(), capture_output=True, text=True, check=True
        )
        return self._told(), done.stderr

    def install_at_terminal(self, answer: str, *options: str) -> tuple[list[str], str]:
        """The same at a terminal, where a person types `answer`."""
        ours, theirs = pty.openpty()
        os.write(ours, answer.encode() + b"\n")
        try:
            subprocess.run(self._command(options), env=self._environment(), stdin=theirs, stderr=theirs, check=True)
            os.set_blocking(ours, False)
            seen = b""
            with suppress(BlockingIOError):
                while more := os.read(ours, 4096):
                    seen += more
            return self._told(), seen.decode()
        finally:
            os.close(ours)
            os.close(theirs)

    def _command(self, options: tuple[str, ...]) -> list[str]:
        return [str(self.base / "scripts/install"), *options]

    def _environment(self) -> dict[str, str]:
        return {"PATH": f"{self.base}/programs"}

    def _told(self) -> list[str]:
        told = self.asked.read_text().splitlines() if self.asked.exists() else []
        self.asked.unlink(missing_ok=True)
        return [
            line.removeprefix("-m pip install --disable-pip-version-check --constraint packaging/") for line in told
        ]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def torch_of(told: list[str]) -> list[str]:
    return [line.split()[-1] for line in told if "torch" in line]


def pinned() -> str:
    lines = (ROOT / "packaging" / "constraints.txt").read_text().splitlines()
    return next(line.removeprefix("torch==") for line in lines if line.startswith("torch=="))


@no_card_here
def test_without_a_card_the_build_for_processors_is_taken(house: House) -> None:
    program(house.base / "programs/nvidia-smi", "exit 9")  # the program is there, and finds no driver
    assert torch_of(house.install()[0]) == [f"torch=={pinned()}+cpu"]
    assert house.install()[0] == []  # installed


@no_card_here
def test_pytorchs_own_index_is_asked_only_where_no_other_has_the_build(house: House) -> None:
    missing = f'case $2$* in pip*extra-index*) ;; pip*cpu) echo "$@" >>{house.asked}; exit 1;; esac'
    program(house.base / ".venv/bin/python", f'{missing}\ncase $2 in pip) echo "$@" >>{house.asked};; esac')
    told = [line for line in house.install()[0] if "torch" in line]
    assert ["--extra-index-url" in line for line in told] == [False, True]


def test_with_a_card_no_build_for_processors_only_will_do(house: House) -> None:
    program(house.base / "programs/nvidia-smi", 'echo "GPU 0: a card"')
    assert torch_of(house.install()[0]) == [f"torch==={pinned()}"]


@no_card_here
def test_a_card_that_comes_later_is_found(house: House) -> None:
    program(house.base / "programs/nvidia-smi", "exit 9")
    house.install()
    program(house.base / "programs/nvidia-smi", 'echo "GPU 0: a card"')
    assert torch_of(house.install()[0]) == [f"torch==={pinned()}"]


@no_card_here
def test_the_build_for_cards_is_taken_where_it_is_asked_for(house: House) -> None:
    assert torch_of(house.install("--cuda")[0]) == [f"torch==={pinned()}"]


def test_a_plain_install_brings_packages_of_python_and_nothing_else(house: House) -> None:
    told, seen = house.without("bwrap", "chromium", "nft").install()
    assert told[1:] == ["constraints.txt --force-reinstall --no-deps .", "constraints.txt .[peer,tracker]"]
    assert seen.count("\n") <= 6
    assert "sudo apt-get install bubblewrap" in seen
    assert "chromium" not in seen


def test_bubblewrap_is_installed_by_the_command_that_was_asked_about(house: House) -> None:
    told, seen = house.without("bwrap").install_at_terminal("y")
    assert told[-1] == "sudo apt-get install -y -qq bubblewrap"
    assert 'Run "sudo apt-get install bubblewrap" now? [y/N]' in seen


@pytest.mark.parametrize("answer", ["", "n", "what?"])
def test_bubblewrap_is_not_installed_without_a_yes(house: House, answer: str) -> None:
    told, seen = house.without("bwrap").install_at_terminal(answer)
    assert not [line for line in told if "apt-get" in line]
    assert seen.rstrip().endswith("sudo apt-get install bubblewrap")


def test_an_install_to_work_on_axon_says_what_it_takes_from_debian_and_takes_it(house: House) -> None:
    told, seen = house.without("bwrap", "chromium", "nft").install("--dev")
    assert told[1] == "constraints.txt --editable .[test]"
    assert told[-1] == "sudo -n apt-get install -y -qq bubblewrap chromium nftables iproute2"
    assert "Its tests need bubblewrap chromium nftables iproute2 from Debian" in seen


def test_a_plain_install_becomes_one_to_work_on_and_stays_one(house: House) -> None:
    house.install()
    assert "--editable" in house.install("--dev")[0][1]
    assert house.install() == ([], "")
    assert house.install("--dev") == ([], "")


def test_new_code_is_installed_again_where_a_copy_of_it_runs(house: House) -> None:
    house.install()
    (house.base / "axonp2p/code.py").write_text("new")
    assert house.install()[0]
    house.install("--dev")
    (house.base / "axonp2p/code.py").write_text("newer")
    assert not house.install()[0]


def test_an_option_that_there_is_not_shows_those_that_there_are_from_any_folder() -> None:
    done = subprocess.run(["./install", "--no-such-option"], cwd=ROOT / "scripts", capture_output=True, text=True)
    assert done.returncode == 2
    assert "scripts/install --dev" in done.stderr
    assert "sed:" not in done.stderr


def test_an_install_that_fails_is_tried_again_and_shows_why(house: House) -> None:
    program(house.base / ".venv/bin/python", "echo no network; exit 1")
    done = subprocess.run(house._command(()), env=house._environment(), capture_output=True, text=True)
    assert done.returncode == 1
    assert "no network" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("fix: ")
    assert not (house.base / ".venv/installed").exists()


def requirements() -> list[Requirement]:
    """Those of setup.cfg, extras too."""
    import configparser

    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    texts = [config["options"]["install_requires"], *config["options.extras_require"].values()]
    lines = (line.strip() for text in texts for line in text.splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith(("#", "axonp2p["))]


def test_each_range_begins_with_the_version_of_the_lock_file() -> None:
    pins: dict[str, set[str]] = {}
    for line in (ROOT / "packaging" / "constraints.txt").read_text().splitlines():
        if line and not line.strip().startswith("#"):
            name, _, version = line.partition(";")[0].strip().partition("==")
            pins.setdefault(name, set()).add(version)
    for one in requirements():
        lowest = next(part.version for part in one.specifier if part.operator == ">=")
        versions = pins[one.name]
        assert all(one.specifier.contains(version) for version in versions), one
        assert min(map(Version, versions)).release[:2] == Version(lowest).release[:2], one
