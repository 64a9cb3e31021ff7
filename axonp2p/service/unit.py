"""Where a unit of systemd goes, how it is started and stopped, and what all our units say alike (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from axonp2p.errors import KeyFileUnsafe, LogDamaged, PortTaken, SettingsError

Command = tuple[str, ...]

USAGE_EXIT = 2
"""As click ends a program whose options are wrong."""
NO_USE_TO_RESTART = sorted(
    {USAGE_EXIT} | {kind.exit_code for kind in (KeyFileUnsafe, LogDamaged, PortTaken, SettingsError)}
)
"""Exit codes after which a new start ends the same: options, settings, a key that others can read, a taken port."""


@dataclass(frozen=True)
class Unit:
    """The unit of a program: of one person, or of the whole machine."""

    program: str
    system: bool = False

    @property
    def name(self) -> str:
        """Of the file, and for systemctl."""
        return f"{self.program}.service"

    def path(self, person: Path) -> Path:
        """Where the file is, for somebody with that home folder."""
        folder = Path("/etc/systemd/system") if self.system else person / ".config/systemd/user"
        return folder / self.name

    @property
    def systemctl(self) -> Command:
        """How its manager is called."""
        return ("systemctl",) if self.system else ("systemctl", "--user")

    @property
    def begin(self) -> tuple[Command, ...]:
        """To be run once the file is there."""
        return (self._reload, (*self.systemctl, "enable", "--now", self.name))

    @property
    def end(self) -> tuple[Command, ...]:
        """To be run before the file goes."""
        return ((*self.systemctl, "disable", "--now", self.name),)

    @property
    def forget(self) -> tuple[Command, ...]:
        """To be run after it went."""
        return (self._reload,)

    @property
    def late_end(self) -> tuple[Command, ...]:
        """To be run when it went, but `end` could not be run before."""
        return ((*self.systemctl, "stop", self.name), self._reload)

    @property
    def journal(self) -> str:
        """The command that shows what it printed."""
        return " ".join(("journalctl", *([] if self.system else ["--user"]), "-u", self.program, "-n", "20"))

    @property
    def _reload(self) -> Command:
        return (*self.systemctl, "daemon-reload")


def command_line(python: str, module: str, *words: str) -> str:
    """ExecStart: that interpreter runs that module, as systemd.service(5) wants it."""
    # -P: a folder that happens to be the current one is nothing to import from.
    return " ".join(_quoted(word) for word in (python, "-P", "-m", module, *words))


def restart_lines(seconds: int) -> str:
    """How it is started again: not where that is of no use."""
    codes = " ".join(map(str, NO_USE_TO_RESTART))
    return (
        f"Restart=on-failure\nRestartSec={seconds}\n"
        f"# Wrong options or settings, a key that others can read, a port that is taken: a new start ends the same.\n"
        f"RestartPreventExitStatus={codes}"
    )


def _quoted(word: str) -> str:
    """% begins a specifier, $ a variable."""
    plain = word.replace("%", "%%").replace("$", "$$").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
