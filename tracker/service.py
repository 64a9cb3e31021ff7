"""`axon-tracker service install | uninstall | status`."""

from __future__ import annotations

from axonp2p.service.commands import ServiceProgram, service_group
from axonp2p.settings import home_folder
from tracker.unit import NAME, SYSTEM_HOME, text

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
