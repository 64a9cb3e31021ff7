"""The facts that `axon doctor` found, before any of them is judged (pure: values only)."""

from __future__ import annotations

from dataclasses import dataclass, field

from axonp2p.identity.peer_id import PeerId
from axonp2p.table.tracker_checks import TrackerFacts


@dataclass(frozen=True)
class ClientTrackerFacts(TrackerFacts):
    """With what it showed of the swarm."""

    version: str = ""
    alive: int = 0
    """Peers that it knows, by its word."""
    peers: frozenset[PeerId] = frozenset()
    """Those that it showed, all or a random part; without those whose rows are seconds old."""
    names: dict[PeerId, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DhtFacts:
    """The state of the DHT, as far as this computer could see it."""

    wanted: bool
    """Whether the settings want it."""
    known: int = 0
    """Nodes that trackers, the settings or the last run name."""
    answering: int = 0
    over_tcp: int | None = None
    """When none of them answers: how many of some do over TCP; None when that was not tried."""
    trouble: str = ""


@dataclass(frozen=True)
class ClientMachineFacts:
    """This computer."""

    home: str
    versions: dict[str, str]
    """Of Python and of the libraries; empty for one that is missing."""
    key_trouble: str
    key_fix: str
    sandbox_trouble: str
    disk_free_mb: int
    memory_mb: int


@dataclass(frozen=True)
class LogFacts:
    """The trackers' logs as they are now, compared with what was seen of them before."""

    entries: dict[str, int] = field(default_factory=dict)
    """How many, by the tracker's name."""
    false: dict[str, str] = field(default_factory=dict)
    """Why a log cannot be true, by its tracker's name or id; also of trackers that are silent now."""
    unproved: dict[str, str] = field(default_factory=dict)
    """Why a tracker did not show that its log continues what was seen of it."""
    anew: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Trackers that began a new log: how many entries the old one had, and the new one has."""
    trouble: str = ""
    """Why what was seen before cannot be read."""
    fix: str = ""
    kept: str = ""
    """The file with what was seen, evidence too."""


@dataclass(frozen=True)
class ClientFacts:
    """All of it."""

    machine: ClientMachineFacts
    trackers: list[ClientTrackerFacts]
    dht: DhtFacts
    logs: LogFacts = LogFacts()
    settings_trouble: str = ""
    """Why no tracker is known, or why those of the settings cannot be read."""
    settings_fix: str = ""
