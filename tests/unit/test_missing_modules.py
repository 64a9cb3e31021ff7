"""What is said where a module is missing: which extra brings it, or which system has it. Never that this is a bug."""

from __future__ import annotations

import subprocess
import sys

import pytest

from axonp2p import missing_modules
from axonp2p.console import run_program
from axonp2p.errors import NotInstalled, WrongSystem
from axonp2p.missing_modules import error_of, not_installed


@pytest.mark.parametrize(
    ("module", "extra"), [("torch", "torch"), ("safetensors", "torch"), ("sqlite_utils", "tracker")]
)
def test_the_fix_is_the_command_that_brings_it(module: str, extra: str) -> None:
    error = error_of(module)
    assert isinstance(error, NotInstalled)
    assert error.fix == f'pip install "axonp2p[{extra}]"'


def test_several_extras_are_brought_by_one_command() -> None:
    error = not_installed(["torch", "sqlite_utils"], "a swarm on this computer")
    assert error.message == "a swarm on this computer needs torch and sqlite_utils, which are not installed here"
    assert error.fix == 'pip install "axonp2p[torch,tracker]"'


def test_each_extra_that_is_named_exists(package_extras: dict[str, str]) -> None:
    assert {*missing_modules._EXTRAS.values()} <= {*package_extras}


def test_a_module_that_only_unix_has_names_the_systems() -> None:
    error = error_of("resource")
    assert isinstance(error, WrongSystem)
    assert "WSL2" in error.fix


def test_a_program_ends_with_the_error_and_not_as_a_bug(capsys: pytest.CaptureFixture[str]) -> None:
    def body() -> None:
        raise ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")

    assert run_program(body, debug=False) == NotInstalled.exit_code
    assert capsys.readouterr().err.splitlines()[0].startswith("error AX-604: ")


def test_a_module_of_ours_that_is_missing_is_a_bug(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    def body() -> None:
        raise ModuleNotFoundError("No module named 'axonp2p.lost'", name="axonp2p.lost")

    assert run_program(body, debug=False, report_folder=tmp_path) == 70
    assert "this is a bug" in capsys.readouterr().err


def test_weights_as_tensors_say_what_they_need() -> None:
    # In a process of its own: modules that were loaded with torch cannot be unloaded for one test.
    code = """
import sys
sys.modules.update(torch=None, safetensors=None)
import axonp2p
from axonp2p.errors import NotInstalled
from axonp2p.jobs.kinds import KINDS, load
for ask in (lambda: load(KINDS["train"].result), lambda: axonp2p.load_weights):
    try:
        ask()
    except NotInstalled as error:
        print(error.fix)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60, text=True)
    assert told.stdout.splitlines() == ['pip install "axonp2p[torch]"'] * 2


@pytest.fixture
def package_extras() -> dict[str, str]:
    import configparser
    from pathlib import Path

    config = configparser.ConfigParser()
    config.read(Path(__file__).parents[2] / "setup.cfg")
    return dict(config["options.extras_require"])
