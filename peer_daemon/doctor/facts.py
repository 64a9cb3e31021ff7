"""The facts that `axon-peer doctor` found, before any of them is judged (pure: values only)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from axonp2p.sandbox.attacks.attack import Tried
from axonp2p.sandbox.limits import Priority
from axonp2p.table.tracker_checks import TrackerFacts
from peer_daemon.gpus.seen_gpus import SeenGpus


@dataclass(frozen=True)
class Trouble:
    """A fault and its fix; there is none when `text` is empty."""

    text: str = ""
    fix: str = ""


@dataclass(frozen=True)
class MachineFacts:
    """This computer."""

    home: str
    versions: dict[str, str]
    """Of Python and of the libraries; empty for one that is missing."""
    key: Trouble
    settings: Trouble
    disk_free_mb: int
    keep_disk_free_mb: int
    memory_mb: int
    cores: int
    kinds: tuple[str, ...] = ()
    """The kinds of job that the owner's settings allow; empty: all."""
    gpus: SeenGpus = field(default_factory=SeenGpus)
    lends_gpu: bool = False
    """Whether the owner's settings allow jobs a GPU."""
    no_power_limit: str = ""
    """Why the power of a GPU cannot be limited as the settings say; empty where it can, or need not."""


@dataclass(frozen=True)
class PortFacts:
    """Where it listens, or would."""

    listen: str
    page: str
    """Empty: none is wanted."""
    running: str = ""
    """The state of the peer that runs here, in its own sentence; it holds the ports then. Empty: none runs."""
    reachable: str = "unknown"
    """Whether others can call the one that runs: "yes", "no" or "unknown"."""
    relays: tuple[str, ...] = ()
    """HOST:PORT of those through which others reach it."""
    tcp: str = ""
    """Why nothing could be bound; empty where something could."""
    udp: str = ""
    page_port: str = ""


@dataclass(frozen=True)
class ContainFacts:
    """The state of the wall around a stranger's job, and of the priority that puts the job behind everything else."""

    no_sandbox: str
    """Why there is none; empty where there is one."""
    holds: str
    """The mechanism that limits memory and processes, in a phrase."""
    seccomp: Trouble
    landlock: int
    """Its version; 0 where the kernel has none."""
    priority: Priority
    """Of jobs, as the owner chose."""
    no_idle: str
    """Why a process cannot be put behind everything else; empty where it can."""
    attempts: Sequence[Tried] = ()
    """Attacks on the wall; none where there is no sandbox."""
    no_cuda: str = ""
    """Why no job can compute on the first card that is lent; empty where one can, and where none is lent."""


@dataclass(frozen=True)
class PeerFacts:
    """All of it."""

    machine: MachineFacts
    contain: ContainFacts
    senses: list[tuple[str, bool, str]]
    """The sensors that tell whether the machine is free: name, whether it can be read, one sentence."""
    ports: PortFacts
    trackers: list[TrackerFacts]
