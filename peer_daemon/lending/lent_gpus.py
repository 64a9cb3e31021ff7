"""Which lease has which GPU (pure): one card to one lease, the smallest that will do, free when the lease is over.

A card that the owner's own programs use is nobody's meanwhile. One whose lease is idle counts as free, as a slot does:
the lease gives way to who wants to work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import msgspec

from axonp2p.errors import Busy, Refused
from axonp2p.peers.capability import EVERY_GPU_TAKEN, Gpu, gpu_words, is_gpu_enough
from axonp2p.sandbox.gpu_access import GpuAccess, gpu_access
from peer_daemon.gpus.gpu_lending import lendable
from peer_daemon.gpus.seen_gpus import SeenGpus

LONGEST_NAME, LONGEST_DRIVER = 40, 16
"""Letters that a row has room for."""


@dataclass(frozen=True)
class LentGpu:
    """One card that jobs may have."""

    name: str
    capability: str
    driver: str
    access: GpuAccess

    def told(self, *, taken: bool = False) -> Gpu:
        """As the row names it; its UUID is nobody's business."""
        name, driver = self.name[:LONGEST_NAME], self.driver[:LONGEST_DRIVER]
        return Gpu(name, self.access.memory_mb, self.capability, driver, True if taken else msgspec.UNSET)


def gpus_to_lend(seen: SeenGpus, *, allowed: bool, memory_mb: int) -> list[LentGpu]:
    """The cards that jobs may have when their owner allows it; `memory_mb` of each, 0: all of it."""
    return [
        LentGpu(
            card.name,
            card.capability,
            seen.driver,
            gpu_access(seen.files, card.uuid, card.minor, min(memory_mb or card.memory_mb, card.memory_mb)),
        )
        for card in (lendable(seen) if allowed else ())
    ]


class GpuAssignment:
    """The cards of one peer. A reservation names a lease."""

    def __init__(self, gpus: Iterable[LentGpu] = ()) -> None:
        self.gpus = tuple(gpus)
        """Those that are lent now; a lease keeps the card that it has, whatever becomes of this."""
        self._held: dict[str, str] = {}
        self._wanted: frozenset[str] = frozenset()

    def choose(self, memory_mb: int, capability: str, idle: Collection[str]) -> tuple[LentGpu, str]:
        """The card for a job that asks for this, and the reservation that must give way for it; "" for none.

        `idle`: reservations under which nothing is done. Raises `Refused` when no card would do, `Busy` when each that
        would is taken.
        """
        asked = gpu_words(memory_mb, capability)
        meeting = [
            gpu for gpu in self.gpus if is_gpu_enough(gpu.access.memory_mb, gpu.capability, memory_mb, capability)
        ]
        if not meeting:
            raise Refused(f"this peer lends no GPU{asked}", fix="use another peer; `axon peers` shows what is lent")
        meeting.sort(key=lambda gpu: (self._held.get(gpu.access.uuid, "") in idle, gpu.access.memory_mb))
        for gpu in meeting:
            if self._is_free(gpu, idle):
                return gpu, self._held.get(gpu.access.uuid, "")
        raise Busy(EVERY_GPU_TAKEN, fix="use another peer, or ask again later")

    def take(self, uuid: str, reservation: str) -> None:
        """The lease of that reservation has the card from now on; whoever had it is on the way out."""
        self._held[uuid] = reservation

    def release(self, reservation: str) -> None:
        """The lease is over. Harmless when it has none, and when another one has taken over."""
        self._held = {uuid: holder for uuid, holder in self._held.items() if holder != reservation}

    def wanted(self, uuids: Collection[str]) -> bool:
        """The owner's programs use these cards now, and no others; True when others have to hear of it."""
        news = frozenset(uuids) != self._wanted
        self._wanted = frozenset(uuids)
        return news

    def told(self, idle: Collection[str]) -> list[Gpu]:
        """All of them as the row names them: those that are alike once, free ones first."""
        each = [gpu.told(taken=not self._is_free(gpu, idle)) for gpu in self.gpus]
        alike = [gpu for place, gpu in enumerate(each) if gpu not in each[:place]]
        return sorted(alike, key=lambda gpu: gpu.taken is True)

    def _is_free(self, gpu: LentGpu, idle: Collection[str]) -> bool:
        holder = self._held.get(gpu.access.uuid)
        return gpu.access.uuid not in self._wanted and (holder is None or holder in idle)
