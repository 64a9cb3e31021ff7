"""The offer of a peer, the need of a job, and whether the one meets the other."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from axonp2p.errors import MalformedMessage
from axonp2p.wire.codec import Message
from axonp2p.wire.quantities import MOST_CLAUSES, GpuCapability

Count = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
Label = Annotated[str, msgspec.Meta(max_length=64)]

T = TypeVar("T")


class Gpu(Message, frozen=True):
    """One graphics processor that jobs may use."""

    name: Label
    """As its driver calls it."""
    memory_mb: Count
    """MiB that a job may use of it."""
    capability: GpuCapability | msgspec.UnsetType = msgspec.UNSET
    """The capability of its processors, as NVIDIA counts it."""
    driver: Label | msgspec.UnsetType = msgspec.UNSET
    """Version of its driver."""
    taken: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether a job has it now, or its owner's programs; unset while neither does."""


class Capability(Message, frozen=True):
    """The resources that a peer lends. All of them are claims: a client believes its own measurements."""

    cores: Annotated[int, msgspec.Meta(ge=1, le=4096)]
    """Cores for each job."""
    memory_mb: Count
    """Memory for each job, in MiB."""
    disk_mb: Count
    """Disk for each job, in MiB."""
    gflops: Annotated[float, msgspec.Meta(ge=0, le=1e9)]
    """Measured float32 matrix speed of those cores."""
    slots: Annotated[int, msgspec.Meta(ge=0, le=1024)]
    """How many jobs at a time."""
    free: Annotated[int, msgspec.Meta(ge=0, le=1024)]
    """How many of the slots nobody holds now."""
    python: Label
    """Version of the interpreter that jobs run in."""
    packages: Annotated[dict[Label, Label], msgspec.Meta(max_length=32)]
    """Version by name, lower case with dashes."""
    kinds: Annotated[list[Label], msgspec.Meta(max_length=8)]
    """Which kinds of job it takes, such as `train`."""
    gpus: Annotated[list[Gpu], msgspec.Meta(max_length=16)] = []
    """Graphics processors that jobs may use, each for one job at a time; those that are alike stand here once."""
    datasets: Annotated[list[Label], msgspec.Meta(max_length=16)] = []
    """Names of datasets that the peer has already."""
    upload_mbit: Count = 0
    """Mbit/s that it sends, as its owner says; 0 when that is not known."""
    download_mbit: Count = 0
    """Mbit/s that it receives, as its owner says; 0 when that is not known."""
    platform: Label | msgspec.UnsetType = msgspec.UNSET
    """For which wheels it runs what jobs bring along (`cp311-manylinux_2_36_x86_64`); unset where it takes none."""
    wheels: Literal["any", "listed"] | msgspec.UnsetType = msgspec.UNSET
    """Which of them it takes: any, or those that its owner has listed."""
    refuses: Annotated[str, msgspec.Meta(max_length=120)] = ""
    """Why the peer takes no work at present; empty when it does."""


class Need(Message, frozen=True, omit_defaults=True):
    """The resources that each peer of a job must offer."""

    kind: Label = "train"
    cores: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 1
    memory_mb: Count = 0
    gpu_memory_mb: Count = 0
    """MiB on one graphics processor; 0 when none is needed."""
    packages: Annotated[list[Annotated[str, msgspec.Meta(max_length=100)]], msgspec.Meta(max_length=16)] = []
    """Requirements as pip writes them: `numpy`, `scikit-learn>=1.4`."""
    disk_mb: Count = 0
    """MiB."""
    gflops: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0
    """Float32 matrix speed of the cores, as the peer measured it."""
    datasets: Annotated[list[Label], msgspec.Meta(max_length=16)] = []
    """Names of data that has to lie there already, all of them."""
    upload_mbit: Count = 0
    """Mbit/s; a peer that does not say what it sends does not meet it."""
    download_mbit: Count = 0
    """Mbit/s; a peer that does not say what it receives does not meet it."""
    uptime_s: Count = 0
    """For how long the tracker that is asked must have known the peer without a break, in seconds."""
    also_taken: bool = False
    """Also peers that have no free slot, or refuse work at present: for who looks around, not for who hires."""
    gpu_capability: GpuCapability = ""
    """The least compute capability of that processor; empty when any will do, or none is needed."""

    @property
    def wants_gpu(self) -> bool:
        """Whether a graphics processor is needed."""
        return bool(self.gpu_memory_mb or self.gpu_capability)


def read_capability(plain: dict[str, Any]) -> Capability:
    """The capability in a row's map. Raises `MalformedMessage`."""
    return _read(plain, Capability)


def read_need(plain: dict[str, Any]) -> Need:
    """The need in a query's map, its requirements checked. Raises `MalformedMessage`."""
    need = _read(plain, Need)
    for text in need.packages:
        try:
            clauses = clauses_of(text)
        except InvalidRequirement as error:
            raise MalformedMessage(f"{text!r} is not a package requirement") from error
        if clauses > MOST_CLAUSES:
            raise MalformedMessage(f"{text!r} has {clauses} clauses, and at most {MOST_CLAUSES} are read")
    return need


def as_map(value: Capability | Need) -> dict[str, Any]:
    """The map form, for a row or a query."""
    plain: dict[str, Any] = msgspec.to_builtins(value, builtin_types=(bytes,))
    return plain


def _read(plain: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(plain, kind, builtin_types=(bytes,), strict=True)
    except msgspec.ValidationError as error:
        raise MalformedMessage(f"not a {kind.__name__}: {error}") from error


EVERY_SLOT_TAKEN = "every slot is taken"
EVERY_GPU_TAKEN = "every GPU that would do is taken"


def why_not(offer: Capability, need: Need) -> str:
    """The first reason why `offer` does not meet `need`, or an empty text when it does."""
    if offer.refuses and not need.also_taken:
        return offer.refuses
    if offer.free < 1 and not need.also_taken:
        return EVERY_SLOT_TAKEN
    if need.kind not in offer.kinds:
        return f"does not take {need.kind} jobs"
    if offer.cores < need.cores:
        return f"lends {offer.cores} of the {need.cores} cores needed"
    if offer.memory_mb < need.memory_mb:
        return f"lends {offer.memory_mb} of the {need.memory_mb} MiB memory needed"
    if need.wants_gpu and (without := _why_no_gpu(offer.gpus, need)):
        return without
    if offer.disk_mb < need.disk_mb:
        return f"lends {offer.disk_mb} of the {need.disk_mb} MiB disk needed"
    if offer.gflops < need.gflops:
        return f"computes {offer.gflops:.0f} of the {need.gflops:.0f} GFLOPS needed"
    return _why_not_by_line(offer, need) or _why_not_by_words(offer, need)


def _why_no_gpu(gpus: list[Gpu], need: Need) -> str:
    meeting = [gpu for gpu in gpus if meets_gpu(gpu, need)]
    if not meeting:
        return f"has no GPU{gpu_words(need.gpu_memory_mb, need.gpu_capability)}"
    taken = all(gpu.taken is True for gpu in meeting) and not need.also_taken
    return EVERY_GPU_TAKEN if taken else ""


def meets_gpu(gpu: Gpu, need: Need) -> bool:
    """Whether a graphics processor is what is needed, be it taken or not."""
    return is_gpu_enough(gpu.memory_mb, gpu.capability or "", need.gpu_memory_mb, need.gpu_capability)


def is_gpu_enough(memory_mb: int, capability: str, needed_mb: int, needed_capability: str) -> bool:
    """Whether one has that much memory and can do that much; a capability that is not told is the least of all."""
    return memory_mb >= needed_mb and capability_number(capability) >= capability_number(needed_capability)


def capability_number(text: str) -> tuple[int, int]:
    """A compute capability as a pair that can be compared; (0, 0) where none is told."""
    major, _, minor = text.partition(".")
    return int(major or 0), int(minor or 0)


def gpu_words(memory_mb: int, capability: str) -> str:
    """The need of a graphics processor, to be put behind the word: " with 8192 MiB and capability 8.0"."""
    asked = [f"{memory_mb} MiB"] if memory_mb else []
    asked += [f"capability {capability}"] if capability else []
    return f" with {' and '.join(asked)}" if asked else ""


def _why_not_by_line(offer: Capability, need: Need) -> str:
    for way, has, wants in (
        ("send", offer.upload_mbit, need.upload_mbit),
        ("receive", offer.download_mbit, need.download_mbit),
    ):
        if has < wants:
            says = f"{way}s {has} of the {wants} Mbit/s needed"
            return says if has else f"does not say how much it {way}s ({wants} Mbit/s needed)"
    return ""


def _why_not_by_words(offer: Capability, need: Need) -> str:
    for text in need.packages:
        if not meets_requirement(text, offer.packages.get(package_of(text))):
            return f"lacks {text}"
    for name in need.datasets:
        if name not in offer.datasets:
            return f"has no data called {name}"
    return ""


def package_of(requirement: str) -> str:
    """The name in a requirement, as offers spell it."""
    return _requirement(requirement).name.lower().replace("_", "-")


def clauses_of(requirement: str) -> int:
    """How many conditions a requirement makes of its package's version."""
    return len(_requirement(requirement).specifier)


# A tracker compares one need with thousands of offers, and reading a requirement costs more than all else in it.
@lru_cache(maxsize=1024)
def _requirement(text: str) -> Requirement:
    return Requirement(text)


@lru_cache(maxsize=8192)
def meets_requirement(requirement: str, version: str | None) -> bool:
    """Whether this version of its package meets a requirement; None for a package that is not there."""
    if version is None:
        return False
    specifier = _requirement(requirement).specifier
    try:
        return Version(version) in specifier
    except InvalidVersion:
        return not specifier
