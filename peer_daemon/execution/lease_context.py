"""The parts of a daemon that all of its leases use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from axonp2p.clock import Clock
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.kinds import KINDS
from axonp2p.jobs.spec import NeedSpec
from axonp2p.peers.capability import Capability
from axonp2p.sandbox.child import SandboxedWorker, start_worker
from axonp2p.sandbox.limits import Limits, Priority, scratch_within
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.flow.rate_limit import RateLimit
from axonp2p.transport.lanes.opening import BulkLanes
from peer_daemon.bundles.kept_bundles import KeptBundles
from peer_daemon.earnings.receipts_book import ReceiptsBook
from peer_daemon.lending.leases import LentSlot
from peer_daemon.links.in_turn import InTurn
from peer_daemon.links.line_watch import LineWatch
from peer_daemon.links.turns import SendPace
from peer_daemon.wheels.wheel_cache import WheelCache

RECEIPTS_A_SECOND, RECEIPTS_AT_ONCE = 1.0, 1000.0
"""Receipts that are signed for one household, over all its leases: each stays on this disk, and in trackers' logs, for
ever. A round takes seconds, as a rule; who asks for more waits."""
HOUSEHOLDS = 10.0
"""So many times as many for all households together."""


def limits_of(lease: LentSlot, priority: Priority) -> Limits:
    """The limits of the sandbox under `lease`."""
    scratch_mb = scratch_within(lease.disk_mb, lease.memory_mb)
    executes = KINDS[lease.kind].executes
    return Limits(
        cores=lease.cores,
        memory_mb=lease.memory_mb,
        scratch_mb=scratch_mb,
        executes=executes,
        priority=priority,
        gpu=lease.gpu,
    )


def usual_limits(offer: Capability, priority: Priority) -> Limits:
    """The limits of the sandbox for a job whose [need] says nothing of cores and memory."""
    need = NeedSpec(peers=1)
    memory_mb = min(need.memory, offer.memory_mb)
    scratch_mb = scratch_within(offer.disk_mb, memory_mb)
    return Limits(cores=need.cores, memory_mb=memory_mb, scratch_mb=scratch_mb, priority=priority)


class StartWorker(Protocol):
    """`sandbox.child.start_worker`, or what plays it."""

    async def __call__(
        self, job_folder: Path, limits: Limits, *, program: str, data: Mapping[str, Path], blobs: Path
    ) -> SandboxedWorker: ...


@dataclass(frozen=True)
class LeaseContext:
    """The parts of this daemon that all of its leases use."""

    key: PrivateKey
    clock: Clock
    row: Callable[[], bytes]
    """This peer's newest signed row, encoded. Raises `Busy` before there is one."""
    dials: DialPolicy
    """Which members of a roster may be dialled from here."""
    jobs: Path
    """Where each lease has its folder."""
    book: ReceiptsBook
    upload: InTurn
    """The pace and the turns at which all jobs together send to clients and members."""
    download: SendPace
    """The pace at which they receive."""
    line: LineWatch
    lanes: BulkLanes
    """Of all jobs together."""
    kept: KeptBundles
    """Bundles of clients that were cut off."""
    wheels: WheelCache
    """Packages that jobs brought along."""
    receipts: RateLimit = field(default_factory=lambda: RateLimit(RECEIPTS_A_SECOND, RECEIPTS_AT_ONCE))
    """How many receipts are signed, by household; the empty name is all."""
    start_worker: StartWorker = start_worker
    priority: Priority = "idle"
    """Of their workers, as the owner chose."""
    datasets: Mapping[str, Path] = field(default_factory=dict)
    """Folders that the owner offers, by name."""
