"""The systemd unit of a peer (pure)."""

from __future__ import annotations

from pathlib import Path

from axonp2p.service.unit import Unit, command_line, restart_lines

_UNIT = """\
# Written by `axon-peer service install`; taken away by `axon-peer service uninstall`.
[Unit]
Description=Axon peer: lends the idle time of this computer

[Service]
ExecStart={command}
{restart}
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
# A job that meets its memory limit ends; the daemon and the other jobs continue.
OOMPolicy=continue
# Each job gets a control group of its own below this one.
Delegate=memory pids cpu

# Not here: NoNewPrivileges, ProtectHome, ProtectSystem, PrivateTmp, RestrictNamespaces and SystemCallFilter. Each takes
# from the daemon what bubblewrap needs to wall jobs in: user namespaces, mounts, in places a setuid program.

[Install]
WantedBy=default.target
"""


def text(python: str, home: Path, unit: Unit) -> str:
    """The content of the unit's file: that interpreter runs the peer whose folder is `home`. It is a person's own."""
    command = command_line(python, "peer_daemon.main", "run", "--home", str(home))
    return _UNIT.format(command=command, restart=restart_lines(30))
