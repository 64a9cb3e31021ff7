"""`axon-tracker service install | uninstall | status`: the systemd unit of a tracker, a person's or the machine's."""

from __future__ import annotations

from pathlib import Path

from axonp2p.service.commands import ServiceProgram, service_group
from axonp2p.service.unit import Unit, command_line, restart_lines
from axonp2p.settings import home_folder

NAME = "axon-tracker"
SYSTEM_HOME = f"/var/lib/{NAME}"

_UNIT = """\
# Written by `axon-tracker service install`; taken away by `axon-tracker service uninstall`.
[Unit]
Description=Axon tracker: peers and clients find each other through it
{wants}
[Service]
ExecStart={command}
{restart}
# It says goodbye to other trackers, and ends the jobs that it carries on.
KillMode=mixed
TimeoutStopSec=30
UMask=0077
# A connection is a descriptor.
LimitNOFILE=65536
{own_user}
[Install]
WantedBy={target}
"""
_WANTS = "Wants=network-online.target\nAfter=network-online.target\n"
_OWN_USER = """
# A user of its own, which systemd makes; its key and its database are in StateDirectory and stay.
DynamicUser=yes
StateDirectory=axon-tracker
StateDirectoryMode=0700
# It needs a network, its folder and nothing else of this machine.
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
LockPersonality=yes
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
AmbientCapabilities=CAP_NET_BIND_SERVICE
SystemCallArchitectures=native
"""


def text(python: str, home: Path, unit: Unit) -> str:
    """The content of the unit's file: that interpreter runs the tracker whose folder is `home`."""
    return _UNIT.format(
        command=command_line(python, "tracker.program", "run", "--home", str(home)),
        restart=restart_lines(5),
        wants=_WANTS if unit.system else "",
        own_user=_OWN_USER if unit.system else "",
        target="multi-user.target" if unit.system else "default.target",
    )


service = service_group(
    ServiceProgram(
        name=NAME,
        what="the tracker",
        text=text,
        home=lambda home: home_folder("tracker", home),
        keeps="key, settings and database",
        system_home=SYSTEM_HOME,
    )
)
