"""Programs of a contest, started and watched by name."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.lab.laboratory import ROOT

START_S = 120.0
LONGEST_S = 6 * 3600.0


class Programs:
    """Programs by name, with their output in a folder. None outlives the `with`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, name: str, words: Sequence[object], environment: Mapping[str, str]) -> None:
        """In the repository's folder."""
        with (self._folder / f"{name}.out").open("wb") as out:
            self._running[name] = subprocess.Popen(
                [str(word) for word in words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=ROOT,
                env=dict(environment),
            )

    def wait(self, names: Sequence[str]) -> None:
        """Until these have ended. Raises `RuntimeError` with its output when one ended badly, or not in time."""
        if not self.ended(names, LONGEST_S):
            raise RuntimeError(f"{', '.join(names)} did not end:\n{self.output(names[0])[-4000:]}")

    def ended(self, names: Sequence[str], seconds: float) -> bool:
        """Whether these end within so many seconds. Raises `RuntimeError` with its output when one ends badly."""
        return self._until(lambda: all(self._running[name].poll() is not None for name in names), seconds)

    def until_said(self, name: str, words: str, times: int) -> None:
        """Until it has written these words so often. Raises `RuntimeError` as `wait` does."""
        if not self._until(lambda: self.output(name).count(words) >= times, START_S):
            raise RuntimeError(f"{name} did not say {words!r}:\n{self.output(name)[-4000:]}")

    def output(self, name: str) -> str:
        """All that it wrote."""
        return (self._folder / f"{name}.out").read_text(errors="replace")

    def _until(self, done: Callable[[], bool], seconds: float) -> bool:
        until = time.monotonic() + seconds
        while True:
            over = done()
            for name, process in self._running.items():
                if process.poll():
                    raise RuntimeError(f"{name} did not end well:\n{self.output(name)[-4000:]}")
            if over or time.monotonic() > until:
                return over
            time.sleep(0.1)
