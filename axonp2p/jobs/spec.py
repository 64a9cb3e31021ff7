"""job.toml: what a client wants done, checked so that a mistake is named by its line and the nearest right key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from packaging.requirements import Requirement

from axonp2p.blobs.manifest import MOST_FILES
from axonp2p.errors import JobFileWrong
from axonp2p.jobs.job_file_keys import (
    COMMON,
    LONGEST_RESERVATION_S,
    MOST_INSTALLED,
    Sections,
    Wrong,
)
from axonp2p.jobs.kinds import KINDS, UNLESS_SAID, load
from axonp2p.jobs.overrides import Override, put_into
from axonp2p.jobs.packages_of_peers import never_travels
from axonp2p.jobs.section import Section
from axonp2p.toml_text import line_of, nearest, nearest_section, not_toml
from axonp2p.wire.quantities import Count, Quantity

JOB_FILE = "job.toml"
JOB_FILE_LIMIT = 64 * 1024
_LARGEST_WHOLE = 2**63
"""TOML's own limit; Python's reader has none for hexadecimal digits."""
_DEEPEST = 8
_MOST_DOTS = 1000
"""In one line: reading a key takes time by the square of its parts."""

# Bounds that hold also where a spec comes back from a job.json; `job_file_keys` is stricter, key by key.
Word = Annotated[str, msgspec.Meta(max_length=256)]


class NeedSpec(msgspec.Struct, frozen=True, kw_only=True):
    """`[need]`: what each peer must offer, and how many there should be."""

    peers: Count = 4
    min_peers: Count = 1
    """With fewer left the job cannot go on."""
    wait: Count = 300
    """For how long it then looks for others before it fails, in seconds."""
    reserve: Count = LONGEST_RESERVATION_S
    """For how long peers are reserved at a time, in seconds."""
    cores: Count = 1
    memory: Count = 1024
    """MiB."""
    gpu_memory: Count = 0
    """MiB on one GPU; 0 means that none is needed, unless a capability is named."""
    gpu_capability: Word = ""
    """The GPU's least compute capability, such as "8.0"; empty: any."""
    disk: Count = 0
    """MiB."""
    gflops: Quantity = 0.0
    """Float32 matrix speed of the cores, as the peer measured it."""
    packages: Annotated[list[Word], msgspec.Meta(max_length=16)] = []
    """Requirements as pip writes them."""
    datasets: Annotated[list[Word], msgspec.Meta(max_length=16)] = []
    """Names of datasets that the peer has already."""
    upload: Count = 0
    """Mbit/s; 0 means that it does not matter."""
    download: Count = 0
    """Mbit/s; 0 means that it does not matter."""
    uptime: Count = 0
    """For how long a tracker must have known the peer without a break, in seconds."""
    max_rtt: Count = 250
    """Milliseconds."""

    @property
    def wants_gpu(self) -> bool:
        """Whether each peer must lend a GPU."""
        return bool(self.gpu_memory or self.gpu_capability)


class PackagesSpec(msgspec.Struct, frozen=True, kw_only=True):
    """`[packages]`: what the job brings along for peers that lack it, as wheels."""

    install: Annotated[list[Word], msgspec.Meta(max_length=MOST_INSTALLED)] = []
    """Requirements as pip writes them; what they need comes too."""
    lock: Word = ""
    """The name of a pylock.toml (PEP 751) in the job's folder, in place of `install`."""

    @property
    def wanted(self) -> bool:
        """Whether there are any."""
        return bool(self.install or self.lock)


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The part of job.toml for a job of any kind. Each kind's own adds its section, under the kind's name."""

    name: Word
    kind: Word = UNLESS_SAID
    data: Annotated[list[Word], msgspec.Meta(max_length=MOST_FILES)] = []
    """Names of files in the job's folder, or patterns that they fit."""
    need: NeedSpec = NeedSpec()
    packages: PackagesSpec = PackagesSpec()

    @property
    def why_not_hosted(self) -> str:
        """Why a tracker cannot carry this job on; empty: it can."""
        return ""


def read_spec(folder: Path) -> JobSpec:
    """The job that `folder` describes. Raises `JobFileWrong`."""
    return parse_spec(read_job_file(folder), folder / JOB_FILE)


def read_job_file(folder: Path) -> str:
    """The text of its job.toml. Raises `JobFileWrong` when there is none that could be read."""
    path = folder / JOB_FILE
    try:
        with path.open("rb") as stream:
            content = stream.read(JOB_FILE_LIMIT + 1)
    except OSError as error:
        raise JobFileWrong(
            f"{path} cannot be read: {error.strerror}", fix="axon init NAME writes a job folder that works"
        ) from error
    if len(content) > JOB_FILE_LIMIT:
        raise JobFileWrong(f"{path} has more than {JOB_FILE_LIMIT} bytes", fix="data belongs in files of its own")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise JobFileWrong(f"{path}, line {line}: not UTF-8 text", fix="save the file as UTF-8") from error


def parse_spec(text: str, path: Path | str, overrides: Sequence[Override] = ()) -> JobSpec:
    """The job in the text of a job.toml, with what was given beside it; `path` is for messages.

    Raises `JobFileWrong` for the first mistake, by its line or by the override that made it.
    """
    if any(line.count(".") > _MOST_DOTS for line in text.splitlines()):
        raise JobFileWrong(f"{path}: a line with more than {_MOST_DOTS} dots", fix="docs/jobs.md shows a job.toml")
    try:
        plain = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # beside those of TOML's grammar: numbers of too many digits
        where, reason = not_toml(text, error)
        raise JobFileWrong(f"{path}, line {where}: not TOML: {reason}", fix="docs/jobs.md shows a job.toml") from error
    try:
        return _read(put_into(plain, overrides))
    except Wrong as wrong:
        raise _told(wrong, text, path, overrides) from None


def _told(wrong: Wrong, text: str, path: Path | str, overrides: Sequence[Override]) -> JobFileWrong:
    """The same, naming where it stands."""
    for one in reversed(overrides):
        if (wrong.section, wrong.key) in ((one.section, one.key), ("", one.section)):
            return JobFileWrong(f"{one.said}: {wrong.problem}", fix=one.fix(wrong.fix))
    line_number = line_of(text, wrong.section, wrong.key)
    where_text = f", line {line_number}" if line_number else ""
    cause = f"job.toml was read with {', '.join(one.said for one in overrides)}" if overrides else ""
    return JobFileWrong(f"{path}{where_text}: {wrong.key}: {wrong.problem}", cause=cause, fix=wrong.fix)


def _read(plain: dict[str, Any]) -> JobSpec:
    """Raises `Wrong`."""
    own = section_of(_checked(COMMON, "", {"kind": plain.get("kind", UNLESS_SAID)})["kind"])
    sections = {**COMMON, "": {**COMMON[""], **own.above}, own.name: own.rules}
    found: dict[str, dict[str, Any]] = {section: {} for section in sections}
    for key, value in plain.items():
        if key and key in sections:
            if not isinstance(value, dict):
                _check_plain("", key, value)
                raise Wrong("", key, f"expected a section, got {value!r}", f"[{key}]")
            found[key] = _checked(sections, key, value, own.foreign)
        else:
            found[""] |= _checked(sections, "", {key: value}, own.foreign)
    if "name" not in found[""]:
        raise Wrong("", "name", "a job needs a name", 'name = "my-job"')
    sections_of_all = {"need": NeedSpec(**found["need"]), "packages": PackagesSpec(**found["packages"])}
    read: JobSpec = own.spec(**found[""], **sections_of_all, **{own.name: own.struct(**found[own.name])})
    need = read.need
    if need.min_peers > need.peers:
        problem = f"{need.min_peers} is more than peers, which is {need.peers}"
        raise Wrong("need", "min-peers", problem, f"min-peers = {need.peers}")
    if read.packages.install and read.packages.lock:
        raise Wrong("packages", "lock", "a lock names all packages, so there is nothing to install", "remove install")
    for text in read.packages.install:
        if never_travels(Requirement(text).name):
            fix = f'remove it; packages = ["{text}"] under [need] asks for peers that have it'
            raise Wrong("packages", "install", f"{Requirement(text).name} is never sent: peers use their own", fix)
    own.check_together(read)
    return read


def section_of(kind: str) -> Section:
    """A kind of job's part of job.toml."""
    section: Section = load(KINDS[kind].section)
    return section


def _check_plain(section: str, key: str, value: Any) -> None:
    """Raise `Wrong` for what TOML allows and no rule could show to a person: endless numbers, endless nesting."""
    level = [value]
    for _ in range(_DEEPEST):
        if any(isinstance(one, int) and not -_LARGEST_WHOLE <= one < _LARGEST_WHOLE for one in level):
            raise Wrong(section, key, "expected whole numbers of at most 64 bits", f"{key} = 1")
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    if level:
        raise Wrong(section, key, f"expected at most {_DEEPEST} levels within each other", f"{key} = []")


def need_of(spec: JobSpec) -> dict[str, Any]:
    """The need that each peer must meet, as the map that a query carries (`peers.capability.Need`)."""
    return _as_query(spec.kind, spec.need)


def need_in_words(words: Iterable[str]) -> dict[str, Any]:
    """The same map from words as a person types them: `cores=4`, `memory=8 GB`, `packages=numpy,torch>=2`.

    A thing that is not named is not asked for. Raises `JobFileWrong` naming the word.
    """
    plain: dict[str, Any] = {}
    for word in words:
        key, sign, text = word.partition("=")
        value: Any = text.strip()
        if key in ("packages", "datasets"):
            value = [part.strip() for part in text.split(",") if part.strip()]
        elif re.fullmatch(r"[0-9]{1,18}", value):
            value = int(value)
        elif re.fullmatch(r"[0-9]{1,18}\.[0-9]{1,18}", value):
            value = float(value)
        if not sign or key in _NO_NEED:
            raise JobFileWrong(f"{word!r} says nothing of a need", fix="write KEY=VALUE, such as cores=4")
        plain[key] = value
    try:
        checked = _checked(COMMON, "need", plain)
    except Wrong as wrong:
        raise JobFileWrong(f"{wrong.key}: {wrong.problem}", fix=wrong.fix.replace(" = ", "=")) from None
    return _as_query(UNLESS_SAID, NeedSpec(**({"memory": 0} | checked)))


_NO_NEED = ("peers", "min-peers", "wait", "reserve", "max-rtt")
"""Keys of `[need]` that are about the job's choice, not about what one peer offers."""


def _as_query(kind: str, need: NeedSpec) -> dict[str, Any]:
    # Not said where it does not matter: trackers of older builds do not know it.
    gpu = {"gpu_capability": need.gpu_capability} if need.gpu_capability else {}
    return gpu | {
        "kind": kind,
        "cores": need.cores,
        "memory_mb": need.memory,
        "gpu_memory_mb": need.gpu_memory,
        "packages": list(need.packages),
        "disk_mb": need.disk,
        "gflops": need.gflops,
        "datasets": list(need.datasets),
        "upload_mbit": need.upload,
        "download_mbit": need.download,
        "uptime_s": need.uptime,
    }


def _checked(
    sections: Sections,
    section: str,
    plain: dict[str, Any],
    foreign: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The section's values by their field names, each read by its key's own rule."""
    values = {}
    for key, value in plain.items():
        _check_plain(section, key, value)
        rule = sections[section].get(key)
        if rule is None:
            if elsewhere := foreign.get(key.replace("_", "-").lower()):
                raise Wrong(section, key, *elsewhere)
            meant = (
                nearest_section(sections, key)
                if not section and isinstance(value, dict)
                else nearest(sections, section, key)
            )
            question = f" Did you mean {meant}?" if meant else ""
            fix = f"write {meant}" if meant else "remove it; docs/jobs.md lists every key"
            raise Wrong(section, key, f"unknown key.{question}", fix)
        try:
            values[key.replace("-", "_")] = rule(value)
        except Wrong as wrong:
            raise Wrong(section, key, wrong.problem, f"{key} = {wrong.fix}") from None
    return values
