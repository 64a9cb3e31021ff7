"""`axon` without its start: one process has loaded it and is forked for each command.

A command takes hundredths of a second so, instead of half a second and more. `ForkedAxon` is the asking side.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from tests.system.processes import QUIET

ENDS_S = 10.0
"""How long a command may take from SIGTERM to its end."""


class ForkedAxon:
    """`with` it: commands can be run."""

    def __init__(self, said: Path) -> None:
        """What commands say goes to the file `said`."""
        self._said = said

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.laboratory.forked_axon", str(self._said)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **QUIET},
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(2 * ENDS_S)

    def run(self, words: Sequence[str], within_s: float) -> tuple[int | None, str]:
        """Exit code (None: it had to be ended) and what it said."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([list(words), within_s]) + "\n")
        self._process.stdin.flush()
        code: int | None = json.loads(self._process.stdout.readline())
        return code, self._said.read_text(errors="replace")


def _load() -> None:
    for package in ("client_cli", "client_cli.commands", "client_cli.doctor", "client_cli.report", "axonp2p.client"):
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            if not module.ispkg:
                importlib.import_module(module.name)


def _serve(said: str) -> None:
    for line in sys.stdin:
        words, within_s = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(words, said)
        until = time.monotonic() + within_s
        code, told = None, signal.SIGTERM
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
            if time.monotonic() > until:
                os.kill(child, told)
                until, told = time.monotonic() + ENDS_S, signal.SIGKILL
            time.sleep(0.005)
        if told == signal.SIGTERM:
            code = os.waitstatus_to_exitcode(ended[1])
        print(json.dumps(code), flush=True)


def _become(words: list[str], said: str) -> NoReturn:
    code = 70
    try:
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for ours, theirs in ((nothing, 0), (out, 1), (out, 2)):
            os.dup2(ours, theirs)
        sys.argv = ["axon", *words]
        importlib.import_module("client_cli.main").main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _load()
    _serve(sys.argv[1])
