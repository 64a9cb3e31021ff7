"""Which files of a job's folder travel between a host and a client, and how each of them changes (pure).

The names come from the other side, and become paths: none is taken that this file does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from axonp2p.errors import MalformedMessage
from axonp2p.hosting.messages import FolderFile

RECORD = "job.json"
EVENTS = "events.jsonl"
METRICS = "metrics.csv"
RESULTS = "results.csv"
LAYOUT = "model.layout"
MODEL = "model.safetensors"
BEST = "best.safetensors"
LOGS = "logs"
STATES = "states"
OUTPUTS = "out"

RECORD_LIMIT = 2**20
"""Bytes of job.json: it travels in one frame."""
GROWING_LIMIT = 64 * 2**20
"""Bytes of a file that is looked at while it grows; what is beyond them stays at the host."""
FIXED_LIMIT = 2**40
SMALL_STATE = 64 * 2**20
"""Bytes of a state that is copied beforehand, for the case that the host does not come back."""

_LOG = re.compile(rf"{LOGS}/[A-Za-z0-9_-][A-Za-z0-9._-]{{0,63}}\.log", re.ASCII)
_STATE = re.compile(rf"{STATES}/[0-9]{{6,9}}-[0-9a-f]{{64}}\.safetensors", re.ASCII)
_FROZEN = re.compile(rf"{STATES}/frozen-[0-9a-f]{{64}}\.safetensors", re.ASCII)
_PACKED = re.compile(r"results-[0-9a-f]{64}\.packed", re.ASCII)
_FOLDER = re.compile(rf"{OUTPUTS}/[A-Za-z0-9_-][A-Za-z0-9._-]{{0,63}}", re.ASCII)


class Kind(StrEnum):
    """How a file changes."""

    GROWING = "growing"
    """Lines are added at its end; seldom it is written anew, whole, as the layout is."""
    FIXED = "fixed"
    """It is there when it is whole, and does not change."""
    FOLDER = "folder"
    """So is this one: the files of one result, or what a program left at one peer, which travel as one
    (`packed_folder`). No listing has it: there may be thousands, and who asks knows from results and events which."""


def kind_of(name: str) -> Kind | None:
    """How the file of that name changes; None when no such file travels."""
    if name in (EVENTS, METRICS, RESULTS, LAYOUT) or _LOG.fullmatch(name):
        return Kind.GROWING
    if name in (MODEL, BEST) or is_state(name) or is_frozen(name) or is_packed(name):
        return Kind.FIXED
    return Kind.FOLDER if _FOLDER.fullmatch(name) else None


def is_packed(name: str) -> bool:
    """Whether it is the file of packed results, which has its hash in its name."""
    return _PACKED.fullmatch(name) is not None


def packed_name(digest: str) -> str:
    """How the packed results with that hash are called."""
    return f"results-{digest}.packed"


def is_state(name: str) -> bool:
    """Whether it is the file of a state."""
    return _STATE.fullmatch(name) is not None


def is_frozen(name: str) -> bool:
    """Whether it is the file of the frozen parameters that belong to states."""
    return _FROZEN.fullmatch(name) is not None


def rounds_of(name: str) -> int:
    """How many rounds are in the state with that file; -1 for what is none."""
    return int(name.removeprefix(f"{STATES}/").partition("-")[0]) if is_state(name) else -1


def newest_rounds(files: Iterable[FolderFile]) -> int | None:
    """How many rounds are in the newest state of a listing; None when there is no state."""
    return max((rounds_of(file.name) for file in files if is_state(file.name)), default=None)


def check_listing(files: Iterable[FolderFile]) -> None:
    """Raise `MalformedMessage` for a file that cannot be one of a job's folder."""
    seen: set[str] = set()
    for file in files:
        kind = kind_of(file.name)
        if kind is None or kind is Kind.FOLDER:
            raise MalformedMessage(f"a job's folder has no file {file.name!r}")
        if file.name in seen:
            raise MalformedMessage(f"a job's folder has {file.name!r} twice")
        if file.size > (GROWING_LIMIT if kind is Kind.GROWING else FIXED_LIMIT):
            raise MalformedMessage(f"a job's folder has a {file.name} of {file.size} bytes")
        seen.add(file.name)


def to_copy(
    there: Iterable[FolderFile],
    here: Mapping[str, FolderFile],
    *,
    result: bool,
    state: bool = False,
    largest: int = SMALL_STATE,
) -> list[FolderFile]:
    """Which files to fetch, in this order; `here` has those that are on this disk, by name.

    A file that grows is fetched whenever its size or its end differs, large fixed ones only with the `result`: the
    weights, or the states to go on from as long as there are none. With `state` the newest state comes as well, and the
    frozen parameters that belong to it, unless one has more than `largest` bytes: where the host is gone for good, the
    job can go on from that. Packed results are not among them: they come when nothing works on the job.
    """
    files = list(there)
    has_model = any(file.name == MODEL for file in files)
    newest = max((file.name for file in files if is_state(file.name)), default="", key=rounds_of)

    def is_wanted(file: FolderFile) -> bool:
        if is_packed(file.name):
            return False
        of_a_state = is_state(file.name) or is_frozen(file.name)
        fits = kind_of(file.name) is Kind.GROWING or (result and of_a_state != has_model)
        beforehand = state and not has_model and (file.name == newest or is_frozen(file.name))
        fits = fits or (beforehand and file.size <= largest)
        return fits and here.get(file.name) != file

    def small_first(file: FolderFile) -> tuple[bool, bool, bool, str]:
        # No state before what belongs to it.
        return kind_of(file.name) is Kind.FIXED, file.name != EVENTS, not is_frozen(file.name), file.name

    return sorted(filter(is_wanted, files), key=small_first)
