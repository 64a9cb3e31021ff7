"""What `axon-peer service` writes where, and which commands belong to it, on each system (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from axonp2p.errors import SettingsError
from peer_daemon.service import launchd, systemd, task_scheduler
from peer_daemon.service.facts import InstallationFacts

TEXTS = {"systemd": systemd.text, "launchd": launchd.text, "task-scheduler": task_scheduler.text}

Command = tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """One system's way."""

    path: PurePath
    text: str
    encoding: str
    begin: tuple[Command, ...]
    """To be run once the file is there."""
    end: tuple[Command, ...]
    """To be run before the file goes."""
    forget: tuple[Command, ...]
    """To be run after it went."""
    late_end: tuple[Command, ...]
    """To be run when it went, but `end` could not be run before."""


def plan_for(system: str, folder: PurePath, uid: int, facts: InstallationFacts) -> Plan:
    """`system` is `sys.platform`, `folder` the person's own. Raises `SettingsError` for a system without a way."""
    if system == "linux":
        reload = ("systemctl", "--user", "daemon-reload")
        return Plan(
            folder / ".config" / "systemd" / "user" / systemd.NAME,
            systemd.text(facts),
            "utf-8",
            (reload, ("systemctl", "--user", "enable", "--now", systemd.NAME)),
            (("systemctl", "--user", "disable", "--now", systemd.NAME),),
            (reload,),
            (("systemctl", "--user", "stop", systemd.NAME), reload),
        )
    if system == "darwin":
        path = folder / "Library" / "LaunchAgents" / launchd.NAME
        end: tuple[Command, ...] = (("launchctl", "bootout", f"gui/{uid}/{launchd.LABEL}"),)
        return Plan(
            path,
            launchd.text(facts),
            "utf-8",
            (("launchctl", "bootstrap", f"gui/{uid}", str(path)),),
            end,
            (),
            end,
        )
    if system == "win32":
        path = PurePath(facts.home) / task_scheduler.NAME
        end = (("schtasks", "/End", "/TN", "axon-peer"), ("schtasks", "/Delete", "/TN", "axon-peer", "/F"))
        return Plan(
            path,
            task_scheduler.text(facts),
            "utf-16",
            (("schtasks", "/Create", "/TN", "axon-peer", "/XML", str(path)), ("schtasks", "/Run", "/TN", "axon-peer")),
            end,
            (),
            end,
        )
    raise SettingsError(
        f"no service is known for {system}", fix="let what starts your programs at login start: axon-peer run"
    )
