"""A volunteer's offer: their machine, cut down by their settings, to kinds of job that its wall holds (pure)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from axonp2p.errors import SettingsError
from axonp2p.identity.peer_id import PeerId
from axonp2p.jobs.kinds import KINDS, JobKind
from axonp2p.peers.capability import Capability, as_map
from axonp2p.plain_text import mebibytes_text
from axonp2p.table.records import Row
from axonp2p.wire.codec import encode
from peer_daemon.gpus.seen_gpus import SeenGpus
from peer_daemon.lending.lent_gpus import GpuAssignment, LentGpu, gpus_to_lend

MOST_PACKAGES = 24
MOST_REFUSES = 120
MOST_DATASETS = 16
MOST_DATASET_BYTES = 128
_OURS = "axonp2p"
_TOOLS = ("test", "browser", "docs", "desktop", "upnp", "tracker", "tensorboard", "wandb", "mlflow")
"""Extras of our own distribution by which no job is served: a peer, a tracker, a client or a developer is."""
_ALWAYS = ("torch", "numpy", "safetensors")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
_ANIMALS = (
    *("otter", "heron", "lynx", "wren", "ibex", "newt", "stork", "marten", "finch", "beaver", "badger", "crane"),
    *("dormouse", "eagle", "ermine", "falcon", "gecko", "goose", "hare", "hedgehog", "hornet", "jackdaw", "kestrel"),
    *("lark", "lizard", "magpie", "mole", "moose", "nightjar", "osprey", "owl", "pike"),
)


@dataclass(frozen=True)
class MeasuredMachine:
    """The measurements of a machine. Memory and disk in MiB, speed in float32 GFLOPS of the lent cores."""

    cores: int
    memory_mb: int
    disk_mb: int
    gflops: float
    python: str
    packages: dict[str, str]
    gpus: SeenGpus = field(default_factory=SeenGpus)
    """The GPUs, and all that bears on lending them."""
    landlock: int = 0
    """Version of the kernel's Landlock; 0: it has none."""
    platform: str = ""
    """`wheels.platforms.Platform` as text; empty: no wheels run here."""


def check_fits(
    machine: MeasuredMachine,
    *,
    cores: int | None = None,
    memory_mb: int | None = None,
    disk_mb: int | None = None,
    fix: str = "axon-peer limits    shows what there is",
) -> None:
    """Raise `SettingsError` when more is promised to a job than the machine has; None: not said."""
    if cores is not None and not 0 < cores <= machine.cores:
        raise SettingsError(f"cores: this computer has {machine.cores}, not {cores}", fix=fix)
    for name, asked, there, has in (
        ("memory", memory_mb, machine.memory_mb, "this computer has"),
        ("disk", disk_mb, machine.disk_mb, "free here:"),
    ):
        if asked is not None and not 0 < asked <= there:
            raise SettingsError(f"{name}: {has} {mebibytes_text(there)}, not {mebibytes_text(asked)}", fix=fix)


@dataclass(frozen=True)
class LendingLimits:
    """How much of it the volunteer wants to lend each job, in the same units; 0 cores or memory: half, shared.

    Only the volunteer can see which data lie on the machine already and how fast its line is (Mbit/s; 0: not said).
    """

    cores: int
    memory_mb: int
    disk_mb: int
    slots: int
    datasets: tuple[str, ...] = ()
    upload_mbit: int = 0
    download_mbit: int = 0
    kinds: tuple[str, ...] = ()
    """Kinds of job that may run; empty: all."""
    wheels: str = "none"
    """Which packages jobs may bring along: "any", "listed" or "none"."""
    gpu: bool = False
    """Whether jobs may have GPUs."""
    gpu_memory_mb: int = 0
    """MiB of a card that its job may use; 0: all of it."""

    def check(self) -> None:
        """Raise `SettingsError` for what cannot be meant."""
        check_kinds(self.kinds)
        if self.wheels not in ("any", "listed", "none"):
            raise SettingsError(f'wheels = "{self.wheels[:40]}": one of "any", "listed", "none"', fix='wheels = "any"')
        for name, number, least in (
            ("cores", self.cores, 0),
            ("memory-mb", self.memory_mb, 0),
            ("disk-mb", self.disk_mb, 1),
            ("slots", self.slots, 1),
            ("gpu-memory-mb", self.gpu_memory_mb, 0),
            ("upload-mbit", self.upload_mbit, 0),
            ("download-mbit", self.download_mbit, 0),
        ):
            if number < least:
                raise SettingsError(f"{name} = {number}: at least {least}", fix="docs/settings.md lists every setting")
        names = self.datasets
        if len(names) > MOST_DATASETS or len("".join(names).encode()) > MOST_DATASET_BYTES or not all(names):
            raise SettingsError(
                f"datasets has {len(names)} names with {len(''.join(names).encode())} bytes",
                cause=f"a row has room for {MOST_DATASETS} names with {MOST_DATASET_BYTES} bytes in all, none empty",
                fix="name fewer, or shorter ones, in the settings",
            )


@dataclass(frozen=True)
class Distribution:
    """One installed distribution, as its metadata tells."""

    name: str
    version: str
    requires: tuple[str, ...]


def lent_cores(cores: int, limits: LendingLimits) -> int:
    """Cores for each job on a machine with `cores`."""
    if limits.cores:
        return min(limits.cores, cores)
    return max(1, cores // 2 // max(1, limits.slots))


def capability_of(machine: MeasuredMachine, limits: LendingLimits, refuses: str) -> Capability:
    """The offer, with every slot free. Never more than the machine has, whatever is wished."""
    memory = limits.memory_mb or machine.memory_mb // 2 // max(1, limits.slots)
    return Capability(
        cores=lent_cores(machine.cores, limits),
        memory_mb=min(memory, machine.memory_mb),
        disk_mb=min(limits.disk_mb, machine.disk_mb),
        gflops=machine.gflops,
        slots=limits.slots,
        free=limits.slots,
        python=machine.python[:64],
        packages=machine.packages,
        kinds=lent_kinds(limits.kinds, machine.landlock),
        gpus=GpuAssignment(lent_gpus(machine, limits)).told(()),
        datasets=sorted(set(limits.datasets)),
        upload_mbit=limits.upload_mbit,
        download_mbit=limits.download_mbit,
        **_wheels_taken(machine.platform, limits.wheels),
        refuses=refuses[:MOST_REFUSES],
    )


def lent_gpus(machine: MeasuredMachine, limits: LendingLimits) -> list[LentGpu]:
    """The cards that jobs may have; none where the owner allows none."""
    return gpus_to_lend(machine.gpus, allowed=limits.gpu, memory_mb=limits.gpu_memory_mb)


def _wheels_taken(platform: str, wheels: str) -> dict[str, Any]:
    return {} if wheels == "none" or not platform else {"platform": platform, "wheels": wheels}


def packages_worth_naming(installed: Iterable[Distribution]) -> dict[str, str]:
    """Name and version of what jobs may ask for: what nothing else needs, and what every job needs; most needed first.

    The rest follows from these, and a row has room for few. Strangers read only what serves jobs: tools with
    which somebody works on Axon itself are nobody's business.
    """
    versions: dict[str, str] = {}
    needed: set[str] = set()
    tools: set[str] = set()
    for one in installed:
        # The first on the path is the one that is imported.
        if versions.setdefault(_normal(one.name), one.version) == one.version:
            needed.update(_required(one.requires))
            if _normal(one.name) == _OURS:
                tools.update(name for extra in _TOOLS for name in _required(one.requires, extra))
    needed |= tools
    named = [name for name in _ALWAYS if name in versions]
    named += sorted(name for name in versions if name not in needed and name not in _ALWAYS and name != "pip")
    return {name[:64]: versions[name][:64] for name in named}


def fit(row: Row, capability: Capability) -> Row:
    """`row` with `capability`, less what is more, or larger, than a row may hold.

    The last packages go first, then the last GPUs, and what every job asks for only then.
    """
    packages, gpus = dict(list(capability.packages.items())[:MOST_PACKAGES]), list(capability.gpus)
    while True:
        lent = msgspec.structs.replace(capability, packages=packages, gpus=gpus)
        fitting = msgspec.structs.replace(row, capability=as_map(lent))
        if len(encode(fitting)) <= Row.LIMIT or not (packages or gpus):
            return fitting
        if gpus and len(packages) <= len(_ALWAYS):
            gpus.pop()
        else:
            packages.popitem()


def name_of(wanted: str, peer: PeerId) -> str:
    """The volunteer's name for this peer, or one made from its key. Raises `SettingsError`."""
    if not wanted:
        animal = _ANIMALS[hashlib.sha256(peer.encode()).digest()[0] % len(_ANIMALS)]
        return f"{animal}-{peer[:4]}"
    if not _NAME.fullmatch(wanted):
        raise SettingsError(
            f"{wanted!r} cannot be the name of a peer",
            cause="a name has 1 to 32 letters, digits, dots, dashes or underscores, and begins with a letter or digit",
            fix="axon-peer run --name otter",
        )
    return wanted


def with_gflops(machine: MeasuredMachine, gflops: float) -> MeasuredMachine:
    """`machine` with its measured speed."""
    return replace(machine, gflops=round(gflops, 2))


def _required(requirements: Iterable[str], extra: str = "") -> Iterable[str]:
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue  # somebody else's broken metadata: then it names nothing
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield _normal(requirement.name)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def check_kinds(names: Iterable[str]) -> None:
    """Raise `SettingsError` for a word that is no kind of job."""
    if unknown := [name for name in names if name not in KINDS]:
        raise SettingsError(
            f"kinds names {', '.join(map(repr, unknown))}",
            cause=f"the kinds of job that this version of Axon knows are: {', '.join(KINDS)}",
            fix=f"kinds = {list(KINDS)}".replace("'", '"') + "   (an empty list allows all)",
        )


def allowed_kinds(names: Iterable[str]) -> list[JobKind]:
    """Those that the owner's settings allow; no name allows all. Each name was checked."""
    chosen = set(names)
    return [kind for kind in KINDS.values() if kind.name in chosen or not chosen]


def why_not_held(kind: JobKind, landlock: int) -> str:
    """Why the wall of a machine with this version of Landlock cannot hold such a job; empty where it can."""
    if landlock or not kind.executes:
        return ""
    return "this kernel has no Landlock, which alone keeps a job from executing what it wrote itself"


def lent_kinds(names: Iterable[str], landlock: int) -> list[str]:
    """The names for the row."""
    return [kind.name for kind in allowed_kinds(names) if not why_not_held(kind, landlock)]
