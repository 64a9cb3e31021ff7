"""The systemd user unit and the commands that belong to it (pure)."""

from __future__ import annotations

Command = tuple[str, ...]

NAME = "axon-peer.service"
PLACE = f".config/systemd/user/{NAME}"
"""Below the person's own folder."""
_RELOAD = ("systemctl", "--user", "daemon-reload")
BEGIN: tuple[Command, ...] = (_RELOAD, ("systemctl", "--user", "enable", "--now", NAME))
"""To be run once the file is there."""
END: tuple[Command, ...] = (("systemctl", "--user", "disable", "--now", NAME),)
"""To be run before the file goes."""
FORGET: tuple[Command, ...] = (_RELOAD,)
"""To be run after it went."""
LATE_END: tuple[Command, ...] = (("systemctl", "--user", "stop", NAME), _RELOAD)
"""To be run when it went, but `END` could not be run before."""

_UNIT = """\
# Written by `axon-peer service install`; taken away by `axon-peer service uninstall`.
[Unit]
Description=Axon peer: lends the idle time of this computer

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=30
# Wrong options, or a key that others can read: trying again mends neither.
RestartPreventExitStatus=2 4
# The daemon hands its jobs back; what is left after that is killed.
KillMode=mixed
TimeoutStopSec=30
UMask=0077

# Behind everything that you do: a hundredth of the processor where all of it is wanted. Of that hundredth the daemon,
# which has to answer, comes first: the workers' groups are idle ones.
Nice=5
CPUWeight=1
IOSchedulingClass=idle
MemoryMax=80%
# A job that meets its memory limit ends; the daemon and the other jobs go on.
OOMPolicy=continue
# Each job gets a control group of its own below this one.
Delegate=memory pids cpu

# Not here: NoNewPrivileges, ProtectHome, ProtectSystem, PrivateTmp, RestrictNamespaces and SystemCallFilter. Each takes
# from the daemon what bubblewrap needs to wall jobs in: user namespaces, mounts, in places a setuid program.

[Install]
WantedBy=default.target
"""


def text(python: str, home: str) -> str:
    """The content of the unit's file: that interpreter runs the peer whose folder is `home`."""
    # -P: a folder that happens to be the current one is nothing to import from.
    command = (python, "-P", "-m", "peer_daemon.main", "run", "--home", home)
    return _UNIT.format(command=" ".join(_quoted(word) for word in command))


def _quoted(word: str) -> str:
    """As systemd.service(5) wants it: % begins a specifier, $ a variable."""
    plain = word.replace("%", "%%").replace("$", "$$").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
