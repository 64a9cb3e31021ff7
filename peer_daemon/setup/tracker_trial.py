"""The outcome of calling a tracker before its address goes into config.toml, and its text for the owner (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from axonp2p.errors import AxonError, VersionMismatch
from axonp2p.identity.certificate_bytes import fingerprint_text
from axonp2p.plain_text import plural
from axonp2p.table.health import Health
from axonp2p.transport.address import PinnedAddress
from axonp2p.wire.codec import PROTOCOL_VERSION


@dataclass(frozen=True)
class TrackerTrial:
    """`error`: why it is of no use as it was typed; None when it answers."""

    address: PinnedAddress
    error: AxonError | None = None
    health: Health | None = None
    presented: bytes = b""
    """Fingerprint of the certificate that answers there, where the address names none; empty where nothing answers."""

    @property
    def offered(self) -> str:
        """The address with the fingerprint that answers there: only the owner can say whether it is the right one."""
        return str(PinnedAddress(self.address.host, self.address.port, self.presented)) if self.presented else ""

    @property
    def text(self) -> str:
        """One line, or two where something is wrong."""
        where = f"tracker {self.address.host_port}"
        if self.error is None and self.health is not None:
            away = f"{self.health.rtt_s * 1000:.0f} ms away, version {self.health.version}"
            known = f"it knows {plural(self.health.alive, 'peer')}"
            trouble = f"; it says of itself: {self.health.trouble}" if self.health.trouble else ""
            return f"{where} answers ({away}; {known}){trouble}"
        if self.presented:
            shown = fingerprint_text(self.presented)
            return f"{where} answers, but the address lacks #FINGERPRINT. The certificate there has: #{shown}"
        error = self.error or AxonError(f"{where} was not called")
        return error.in_a_line + (f"; fix: {error.fix}" if error.fix else "")


def judged(address: PinnedAddress, health: Health) -> TrackerTrial:
    """A tracker that answers, which may be of a build that does not understand this one."""
    if health.protocol and health.protocol != PROTOCOL_VERSION:
        error = VersionMismatch(
            f"tracker {address.host_port} speaks protocol {health.protocol} (version {health.version}), "
            f"and this program {PROTOCOL_VERSION}",
            fix="pip install --upgrade axonp2p    here, or on the tracker's machine",
        )
        return TrackerTrial(address, error)
    return TrackerTrial(address, health=health)


def whether_found(trials: Sequence[TrackerTrial]) -> str:
    """The last word of setup: whether anybody will find this machine."""
    answering = [trial.address.host_port for trial in trials if trial.error is None]
    if answering:
        return f"This machine can be found: while axon-peer runs, {' and '.join(answering)} will list it."
    if trials:
        return "NOT FINDABLE yet: no tracker answers. axon-peer tries again by itself; axon-peer doctor says why."
    return (
        "NOT FINDABLE yet: no tracker is named. It looks on your network and in the DHT; "
        "axon-peer run --tracker URL names one."
    )
