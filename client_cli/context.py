"""The one file that makes and joins what a command needs: home, settings, the library's face, and where answers go."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axonp2p.client.storage.job_store import JobStore
from axonp2p.console import print_answer, printable
from axonp2p.settings import home_folder, home_path

if TYPE_CHECKING:
    from axonp2p.client.storage.trust_book import TrustBook
    from axonp2p.client.swarm import Swarm


@dataclass(frozen=True)
class Context:
    """The values of the common options of a command."""

    home: Path
    as_json: bool
    debug: bool = False

    @classmethod
    def of(cls, home: Path | None, as_json: bool) -> Context:
        """Find (or make) the home. Raises `SettingsError`."""
        return cls(home_folder("client", home), as_json, debug="--debug" in sys.argv)

    def swarm(self, trackers: Sequence[str] = ()) -> Swarm:
        """The library's face; its logs go to stderr. Raises `SettingsError` when no tracker is known."""
        # asyncio, aiohttp and structlog are loaded only where they are used.
        from axonp2p.client.swarm import Swarm
        from axonp2p.logs import configure_logs

        configure_logs(level="debug" if self.debug else "error")
        return Swarm(trackers=list(trackers), home=self.home)

    def jobs(self) -> JobStore:
        """The jobs on this computer's disk."""
        return JobStore(self.home)

    def trust(self) -> TrustBook:
        """The record of what this computer's jobs have found about the work of peers."""
        from axonp2p.client.storage.trust_book import TRUST_FILE, TrustBook

        return TrustBook(self.home / TRUST_FILE)

    def answer(self, text: str, data: Any) -> None:
        """The command's answer: `text` for people, or `data` as one JSON object for programs."""
        print_answer(text, data, as_json=self.as_json)

    def say(self, text: str) -> None:
        """Something on the way to the answer, for people alone."""
        if not self.as_json:
            print(printable(text), flush=True)

    def command(self, *words: str) -> str:
        """A next command that works as it stands: with the same home when it is not the usual one."""
        usual = self.home == home_path("client", None)
        return " ".join(["axon", *words, *([] if usual else ["--home", str(self.home)])])


def how_to_activate() -> str:
    """The shell's command for the virtual environment that this program runs in, when the shell does not find axon."""
    script = Path(sys.prefix, "bin", "activate")
    return f". {script}" if shutil.which("axon") is None and script.exists() else ""


def terminal_width() -> int | None:
    """How many columns an answer may have; None where no terminal shows it: a line is then as long as it is."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def on_terminal() -> bool:
    """Whether a person can be asked something."""
    return sys.stdin.isatty() and sys.stdout.isatty()
