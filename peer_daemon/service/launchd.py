"""The launchd agent of macOS (pure)."""

from __future__ import annotations

import plistlib

from peer_daemon.service.facts import InstallationFacts

LABEL = "org.axonp2p.peer"
NAME = f"{LABEL}.plist"


def text(facts: InstallationFacts) -> str:
    """The content of the property list."""
    agent = {
        "Label": LABEL,
        "ProgramArguments": facts.command,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 30,
        "ExitTimeOut": 30,
        "ProcessType": "Background",
        "LowPriorityIO": True,
        "Nice": 5,
        "Umask": 0o077,
        "StandardOutPath": "/dev/null",
        # What it says before its own log is open.
        "StandardErrorPath": f"{facts.home}/service-errors.log",
    }
    return plistlib.dumps(agent, sort_keys=False).decode()
