"""Puts a service in place and takes it away: the file, and the commands that systemd wants."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from axonp2p.errors import SettingsError
from axonp2p.files import write_whole
from axonp2p.service.unit import Command, Unit

_WITHIN_S = 60
_ASKED = ("is-active", "is-enabled")


def install(path: Path, unit: str) -> bool:
    """Write the file; whether it was not there yet, or said something else. Raises `SettingsError`."""
    content = unit.encode()
    try:
        if path.exists() and path.read_bytes() == content:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
        path.chmod(0o644)  # systemd complains of others, and nothing secret is in it
    except OSError as error:
        raise SettingsError(f"cannot write {path}: {error.strerror}", fix=f"make {path.parent} writable") from error
    return True


def remove(path: Path) -> bool:
    """Remove the file; whether it was there. Raises `SettingsError`."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise SettingsError(f"cannot remove {path}: {error.strerror}", fix=f"rm {path}") from error
    return True


def why_no_manager(unit: Unit) -> str:
    """ "" when the manager of such units answers, else why it does not, in a sentence with what to do."""
    environment = _environment(unit)
    try:
        asked = _run((*unit.systemctl, "show-environment"), environment)
    except FileNotFoundError:
        return "there is no systemctl here"
    except subprocess.TimeoutExpired:
        return f"systemd did not answer within {_WITHIN_S} s"
    if asked.returncode == 0:
        return ""
    if not unit.system and "XDG_RUNTIME_DIR" not in environment:
        return (
            "no systemd answers for you: XDG_RUNTIME_DIR is not set, as in a container, or after su or sudo;"
            " log in yourself, or first: sudo loginctl enable-linger $USER"
        )
    said = asked.stderr.strip().splitlines()
    return f"no systemd answers{'' if unit.system else ' for you'}: {said[-1] if said else 'silence'}"


def carry_out(unit: Unit, commands: Iterable[Command]) -> None:
    """Run them in order. Raises `SettingsError` for one that fails, with what it said."""
    for command in commands:
        try:
            done = _run(command, _environment(unit))
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SettingsError(f"cannot run {' '.join(command)}: {error}", fix=" ".join(command)) from error
        if done.returncode:
            said = done.stderr.strip() or f"exit code {done.returncode}"
            raise SettingsError(f"{' '.join(command)} failed", cause=said, fix=unit.journal)


@dataclass(frozen=True)
class Installed:
    """The facts known of the service."""

    path: str
    written: bool
    """Whether its file is there."""
    active: str
    """As `systemctl is-active` says it; empty where nobody answers."""
    enabled: str
    trouble: str
    """Why nobody answers; empty when somebody does."""
    lingers: bool
    """Whether it also runs while its owner is not logged in."""


def look(unit: Unit, path: Path) -> Installed:
    """How the service is."""
    trouble = why_no_manager(unit)
    active = enabled = ""
    if not trouble:
        answers = (_run((*unit.systemctl, ask, unit.name), _environment(unit)).stdout.strip() for ask in _ASKED)
        active, enabled = answers
    return Installed(str(path), path.exists(), active, enabled, trouble, unit.system or lingers())


def lingers() -> bool:
    """Whether systemd keeps this user's manager running after they logged out."""
    import getpass

    return Path("/var/lib/systemd/linger", getpass.getuser()).exists()


def _environment(unit: Unit) -> Mapping[str, str]:
    """Ours, with the folder of the user's own sockets when only its name is missing."""
    usual = f"/run/user/{os.getuid()}"
    if unit.system or "XDG_RUNTIME_DIR" in os.environ or not os.path.isdir(usual):
        return os.environ
    return os.environ | {"XDG_RUNTIME_DIR": usual}


def _run(command: Command, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
