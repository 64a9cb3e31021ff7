"""Puts the service in place and takes it away: the file, and the commands that systemd wants."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from axonp2p.errors import SettingsError
from axonp2p.files import write_whole
from peer_daemon.service.systemd import NAME, PLACE, Command, text

_WITHIN_S = 60


def own_text(home: Path) -> str:
    """This installation's unit. The interpreter's path is that of the virtual environment, not of what it links to."""
    return text(os.path.abspath(sys.executable), str(home))


def unit_path() -> Path:
    """Where the unit lies, or would. Raises `SettingsError` where systemd cannot be."""
    if sys.platform != "linux":
        raise SettingsError(
            f"a peer is a service on Linux only, and this is {sys.platform}: jobs need Linux's sandbox",
            fix="start it in a Linux container or a virtual machine: axon-peer run",
        )
    return Path.home() / PLACE


def install(path: Path, unit: str) -> bool:
    """Write the file; whether it is there anew. Raises `SettingsError`."""
    content = unit.encode()
    try:
        if path.exists() and path.read_bytes() == content:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
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


def why_no_manager() -> str:
    """ "" when systemd's manager of this user answers, else why it does not, in a sentence with what to do."""
    environment = _environment()
    try:
        asked = _run(("systemctl", "--user", "show-environment"), environment)
    except FileNotFoundError:
        return "there is no systemctl here"
    except subprocess.TimeoutExpired:
        return f"systemd did not answer within {_WITHIN_S} s"
    if asked.returncode == 0:
        return ""
    if "XDG_RUNTIME_DIR" not in environment:
        return (
            "no systemd answers for you: XDG_RUNTIME_DIR is not set, as in a container, or after su or sudo;"
            " log in yourself, or first: sudo loginctl enable-linger $USER"
        )
    return f"no systemd answers for you: {asked.stderr.strip().splitlines()[-1] if asked.stderr.strip() else 'silence'}"


def carry_out(commands: Iterable[Command]) -> None:
    """Run them in order. Raises `SettingsError` for one that fails, with what it said."""
    for command in commands:
        try:
            done = _run(command, _environment())
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SettingsError(f"cannot run {' '.join(command)}: {error}", fix=" ".join(command)) from error
        if done.returncode:
            said = done.stderr.strip() or f"exit code {done.returncode}"
            raise SettingsError(f"{' '.join(command)} failed", cause=said, fix="journalctl --user -u axon-peer -n 20")


@dataclass(frozen=True)
class Installed:
    """What is known of the service."""

    path: str
    written: bool
    """Whether its file is there."""
    active: str
    """As `systemctl --user is-active` says it; empty where nobody answers."""
    enabled: str
    trouble: str
    """Why nobody answers; empty when somebody does."""
    lingers: bool
    """Whether it also runs while its owner is not logged in."""


def look(path: Path) -> Installed:
    """How the service is."""
    trouble = why_no_manager()
    active = enabled = ""
    if not trouble:
        active, enabled = (_run(("systemctl", "--user", ask, NAME), _environment()).stdout.strip() for ask in _ASKED)
    return Installed(str(path), path.exists(), active, enabled, trouble, lingers())


_ASKED = ("is-active", "is-enabled")


def lingers() -> bool:
    """Whether systemd keeps this user's manager running after they logged out."""
    import getpass

    return Path("/var/lib/systemd/linger", getpass.getuser()).exists()


def _environment() -> Mapping[str, str]:
    """Ours, with the folder of the user's own sockets when only its name is missing."""
    usual = f"/run/user/{os.getuid()}"
    if "XDG_RUNTIME_DIR" in os.environ or not os.path.isdir(usual):
        return os.environ
    return os.environ | {"XDG_RUNTIME_DIR": usual}


def _run(command: Command, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
