"""Somebody who types `axon` commands in a home of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from tests.laboratory.fork_server import ReadProgram, fork_server

AXON = str(Path(sys.executable).parent / "axon")


class Person:
    """Somebody with a home and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.environment = {**os.environ, "AXON_HOME": str(self.home), "COLUMNS": "100"}

    def run(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = fork_server().run("client_cli.main", words, 200, self.environment, self.folder)
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def ask(self, *words: str) -> dict[str, Any]:
        """The one JSON object that a command answers with, and nothing beside it."""
        done = self.run(*words, "--json")
        answer: dict[str, Any] = json.loads(done.stdout)
        assert done.stderr == ""
        return answer

    def begin(self, *words: str) -> ReadProgram:
        """What it prints is read as it comes."""
        return fork_server().begin("client_cli.main", words, self.environment, self.folder)

    def write_job(self, name: str, **changes: str) -> None:
        """A job from the template, for two peers, with other changes in job.toml."""
        self.run("init", name)
        file = self.folder / name / "job.toml"
        text = file.read_text()
        for key, value in {"peers": "2", "rounds": "3", **changes}.items():
            lines = [f"{key} = {value}" if line.startswith(f"{key} =") else line for line in text.splitlines()]
            text = "\n".join(lines) + "\n"
        file.write_text(text)


def running_below(folder: Path) -> list[str]:
    """Command lines of living processes that name `folder`."""
    return [
        line
        for process in psutil.process_iter(["cmdline", "status"])
        if str(folder) in (line := " ".join(process.info["cmdline"] or []))
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]
