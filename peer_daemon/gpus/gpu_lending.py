"""Which GPUs are lent, and if none is, why not and what mends it (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from axonp2p.findings import Check, FindingState, ok, warn
from axonp2p.plain_text import mebibytes_text, plural
from axonp2p.sandbox.gpu_access import missing_libraries, missing_nodes
from axonp2p.sandbox.thread_names import MACHINES
from peer_daemon.gpus.seen_gpus import SeenGpu, SeenGpus

ALLOW = "gpu = true under [peer] in config.toml (docs/safety.md says what lending a GPU adds)"
_MAKE_NODES = "sudo nvidia-modprobe -u -c={minor}    (at each start of the machine)"


@dataclass(frozen=True)
class NotLent:
    """Why something is not lent, and what mends it."""

    why: str
    fix: str = ""


def lendable(seen: SeenGpus) -> list[SeenGpu]:
    """The cards that a job could have, whatever the owner wants."""
    if why_no_card(seen):
        return []
    return [card for card in seen.cards if not why_not_this(card, seen)]


def why_no_card(seen: SeenGpus) -> NotLent | None:
    """The reason that keeps every card from being lent; None where there is none."""
    if not seen.cards:
        return NotLent(seen.unseen, seen.unseen_fix)
    if not seen.torch_cuda:
        return NotLent(
            "the installed torch computes on processors alone",
            "install the build of torch for CUDA into the environment of axon-peer (docs/peer.md#lending-a-gpu)",
        )
    if _major(seen.torch_cuda) > _major(seen.driver_cuda):
        return NotLent(
            f"the installed torch needs CUDA {seen.torch_cuda}, and driver {seen.driver} runs {seen.driver_cuda}",
            f"install a driver for CUDA {seen.torch_cuda}, or a torch for CUDA {seen.driver_cuda}",
        )
    if seen.machine not in MACHINES:
        return NotLent(f"cards are lent beside {' and '.join(MACHINES)} processors only, and this is {seen.machine}")
    if missing := missing_libraries(seen.files):
        return NotLent(
            f"driver {seen.driver} has no {' and no '.join(missing)}", "install the driver's libraries for computing"
        )
    return None


def why_not_this(card: SeenGpu, seen: SeenGpus) -> NotLent | None:
    """The reason that keeps one card alone from being lent; None where there is none."""
    if card.sliced:
        return NotLent(
            "it is cut into slices (MIG), whose nodes cannot be given one by one yet",
            f"sudo nvidia-smi -i {card.minor} -mig 0    (makes it one card again)",
        )
    if card.virtual:
        return NotLent("it is a share of a card that a hypervisor gives (vGPU), which other machines use too")
    if missing := missing_nodes(seen.files, card.minor):
        return NotLent(f"{' and '.join(missing)} is not there", _MAKE_NODES.format(minor=card.minor))
    return None


def why_no_power_limit(percent: int, *, root: bool) -> str:
    """Why a card would draw what it likes though its owner says `gpu-power-percent`; empty where it would not."""
    return "" if root or not percent else f"gpu-power-percent = {percent} holds only where axon-peer runs as root"


def checks_of_gpus(seen: SeenGpus, *, allowed: bool, no_power_limit: str = "") -> Iterable[Check]:
    """The lines of `axon-peer doctor`; `allowed`: the owner lends GPUs."""
    lent = lendable(seen)
    no_card = why_no_card(seen)
    state = FindingState.WARN if allowed else FindingState.OK
    if no_card is not None:
        if seen.cards:
            yield Check(state, "gpu", f"{_named(seen.cards)}: not lent: {no_card.why}", no_card.fix if allowed else "")
        elif allowed or not seen.others:
            yield Check(state, "gpu", no_card.why, no_card.fix if allowed else "")
    for card in () if no_card else seen.cards:
        if reason := why_not_this(card, seen):
            yield Check(state, "gpu", f"{card.name}: not lent: {reason.why}", reason.fix if allowed else "")
    if lent and allowed:
        yield ok("gpu", f"{_named(lent)} (driver {seen.driver}), {plural(len(lent), 'job')} at a time: lent")
        if no_power_limit:
            yield warn("gpu", no_power_limit, "sudo nvidia-smi -pl WATTS    (until the next start)")
    elif lent:
        yield ok("gpu", f"{_named(lent)} (driver {seen.driver}): not lent, as you did not allow it: {ALLOW}")
    for other in seen.others:
        yield ok("gpu", f"{other} is seen but not lent: jobs compute on NVIDIA's cards and on processors only")


def gpu_words(seen: SeenGpus) -> str:
    """For a line about the machine: "NVIDIA T4", "NVIDIA T4 (not lendable: ...)", "no NVIDIA GPU seen (...)"."""
    if lent := lendable(seen):
        return ", ".join(card.name for card in lent)
    if seen.cards:
        no_card = why_no_card(seen) or why_not_this(seen.cards[0], seen)
        return f"{_named(seen.cards)} (cannot be lent: {no_card.why if no_card else 'none is free'})"
    if seen.others:
        return f"{', '.join(seen.others)} (cannot be lent: jobs compute on NVIDIA's cards and on processors only)"
    return f"no GPU to lend ({seen.unseen})" if seen.unseen else "no GPU"


def _named(cards: Iterable[SeenGpu]) -> str:
    return ", ".join(f"{card.name} with {mebibytes_text(card.memory_mb)}" for card in cards)


def _major(version: str) -> int:
    digits = version.partition(".")[0]
    return int(digits) if digits.isdecimal() else 0
