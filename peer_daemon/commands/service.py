"""`axon-peer service install | uninstall | status`."""

from __future__ import annotations

from axonp2p.service.commands import ServiceProgram, service_group
from peer_daemon.options import peer_home
from peer_daemon.unit import text

command = service_group(
    ServiceProgram(
        name="axon-peer",
        what="the peer",
        text=text,
        home=peer_home,
        keeps="key, settings and credits",
        logs="axon-peer logs -n 20",
    )
)
