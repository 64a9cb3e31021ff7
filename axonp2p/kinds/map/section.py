"""`[map]` of job.toml: the function, its items, and what becomes of calls that fail. Pure."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from axonp2p.jobs.file_names import why_bad_name
from axonp2p.jobs.job_file_keys import Wrong, or_auto, shown, whole, wrong_value, yes_or_no
from axonp2p.jobs.section import Section
from axonp2p.jobs.spec import JobSpec
from axonp2p.kinds.map.messages import FUNCTION, LARGEST_RESULT, LONGEST_PATH, MOST_CALLS, MOST_ITEMS, PrepareCalls
from axonp2p.kinds.map.opinions.quorum import LARGEST_QUORUM
from axonp2p.kinds.map.reduce_tree import ReduceTree, fold_of
from axonp2p.peers.capability import Capability
from axonp2p.plain_text import amount_of, rounded

MOST_RETRIES = 100
_FN, _REDUCE, _ITEMS, _AGREE = '"task.py:work"', '"task.py:merge"', '"items.jsonl"', '"close"'


class MapSection(msgspec.Struct, frozen=True, kw_only=True):
    """`[map]`: which function is called with which items."""

    fn: Annotated[str, msgspec.Meta(max_length=320)] = ""
    """`task.py:work`; empty where the calls come from a program."""
    items: Annotated[str, msgspec.Meta(max_length=LONGEST_PATH)] | Annotated[int, msgspec.Meta(ge=0, le=MOST_ITEMS)] = 0
    """A file with a line of JSON for each item, or how many items there are: then an item is its number."""
    calls: bool = False
    """Whether the calls come from a program (`axonp2p.Executor`), and are stored with the job."""
    python: Annotated[str, msgspec.Meta(max_length=16)] = ""
    """The version of Python, as `3.11`, whose pickles such calls are; empty where they are none."""
    reduce: Annotated[str, msgspec.Meta(max_length=320)] = ""
    """`task.py:merge`, which makes one result of two; empty: each item has a result of its own."""
    fold: Annotated[int, msgspec.Meta(ge=1, le=MOST_ITEMS)] | None = None
    """So many items are folded by one call, where results are merged; None: as many as leave each core enough calls."""
    retries: Annotated[int, msgspec.Meta(ge=0, le=MOST_RETRIES)] = 0
    """How often a call is made again whose function raised an exception."""
    most_result: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_RESULT)] = 64 * 10**6
    """Bytes that one result may have."""
    chunk: Annotated[int, msgspec.Meta(ge=0, le=MOST_CALLS)] = 0
    """Calls of a chunk; 0: about as many as take a second."""
    quorum: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_QUORUM)] | None = None
    """So many peers must give an equal result before it counts; None: one, and two for chunks that are drawn."""
    agree: Annotated[str, msgspec.Meta(max_length=320)] = "exact"
    """When two results are equal: `exact`, `close`, or a function of the client's own, `compare.py:same`."""


class MapJob(JobSpec, frozen=True, kw_only=True):
    """The whole of job.toml."""

    map: MapSection = MapSection()

    @property
    def why_not_hosted(self) -> str:
        """As `JobSpec` has it."""
        if self.map.calls:
            return "its calls come from a program on this computer, and a host needs fn and items in [map]"
        if ":" not in self.map.agree:
            return ""
        return f'agree = "{self.map.agree}" is called where the job is kept, and a host runs no stranger\'s code'


def tree_of(spec: MapJob, items: int) -> ReduceTree | None:
    """The calls of a job of so many items whose results are merged."""
    if not spec.map.reduce:
        return None
    return ReduceTree(items, spec.map.fold or fold_of(items, spec.need.peers, spec.need.cores))


def preparation_of(section: MapSection, tree: ReduceTree | None) -> PrepareCalls:
    """The first message to a worker."""
    items = section.items if isinstance(section.items, str) else ""
    order = PrepareCalls(most_result=section.most_result, fn=section.fn, items=items)
    if tree is None:
        return order
    return msgspec.structs.replace(order, reduce=section.reduce, count=tree.items, fold=tree.fold)


def _function(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_value(f"expected str, {shown(value)}", _FN)
    if not re.fullmatch(FUNCTION, value):
        raise wrong_value(f'"{value[:60]}" does not name a file and a function in it', _FN)
    file = value.partition(":")[0].removeprefix("./")
    if reason := why_bad_name(file):
        raise wrong_value(f'"{file[:60]}" is no file of the job\'s folder: {reason}', _FN)
    return value.removeprefix("./")


def _agree(value: Any) -> str:
    if value in ("exact", "close"):
        return str(value)
    if not isinstance(value, str) or ":" not in value:
        raise wrong_value(f'expected "exact", "close" or a file and a function in it, {shown(value)}', _AGREE)
    return _function(value)


def _items(value: Any) -> str | int:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= MOST_ITEMS:
            raise wrong_value(f"expected 1 to {MOST_ITEMS:,}, got {value}", "100")
        return value
    if not isinstance(value, str):
        raise wrong_value(f"expected the name of a file or a whole number, {shown(value)}", _ITEMS)
    if len(value) > LONGEST_PATH:
        raise wrong_value(f"expected at most {LONGEST_PATH} characters, got {len(value)}", _ITEMS)
    if reason := why_bad_name(value.removeprefix("./")):
        raise wrong_value(f'"{value[:60]}" is no file of the job\'s folder: {reason}', _ITEMS)
    return value.removeprefix("./")


def _size(value: Any) -> int:
    example = '"64 MB"'
    if isinstance(value, str):
        amount = amount_of(value, "MiB")
        if amount is None:
            raise wrong_value(f"expected a size such as 64 MB, {shown(value)}", example)
        value = rounded(amount * 2**20)
    elif not isinstance(value, int) or isinstance(value, bool):
        raise wrong_value(f"expected a size such as 64 MB, {shown(value)}", example)
    if not 1 <= value <= LARGEST_RESULT:
        raise wrong_value("expected 1 byte to 2 GiB", example)
    return int(value)


def _python(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"3\.[0-9]{1,3}", value):
        raise wrong_value(f"expected a version such as 3.11, {shown(value)}", '"3.11"')
    return value


def why_not(spec: MapJob, offer: Capability) -> str:
    """Why a peer cannot make the calls of this job: a pickle of code holds for one minor version of Python."""
    wanted = spec.map.python
    if not wanted or offer.python == wanted or offer.python.startswith(f"{wanted}."):
        return ""
    return f"it has Python {offer.python}, and the calls are pickles of Python {wanted}"


def _check_together(spec: MapJob) -> None:
    section = spec.map
    if section.calls and (section.fn or section.items or section.reduce):
        problem = "the calls come from a program, which brings functions and items"
        raise Wrong("map", "calls", problem, "remove it")
    if section.fold and not section.reduce:
        raise Wrong("map", "fold", "items are folded only where results are merged", f"reduce = {_REDUCE}")
    if section.python and not section.calls:
        raise Wrong("map", "python", "only calls that come from a program are pickles", "remove it")
    if (section.quorum or 1) > spec.need.peers:
        problem = f"{section.quorum} peers must give the same result, and only {spec.need.peers} are wanted"
        raise Wrong("need", "peers", problem, f"peers = {section.quorum}")
    if not section.calls and not section.fn:
        raise Wrong("map", "fn", "a job of this kind needs a function", f"fn = {_FN}")
    if not section.calls and not section.items:
        raise Wrong("map", "items", "a job of this kind needs items", f"items = {_ITEMS}")


def _files(spec: MapJob) -> list[str]:
    section = spec.map
    own = section.agree.partition(":")[0] if ":" in section.agree else ""
    functions = [section.fn.partition(":")[0], section.reduce.partition(":")[0], own]
    named = [*functions, section.items if isinstance(section.items, str) else ""]
    return [name for name in named if name]


SECTION = Section(
    name="map",
    spec=MapJob,
    struct=MapSection,
    rules={
        "fn": _function,
        "reduce": _function,
        "fold": whole(1, MOST_ITEMS, 10),
        "items": _items,
        "calls": yes_or_no,
        "python": _python,
        "retries": whole(0, MOST_RETRIES, 2),
        "most-result": _size,
        "chunk": whole(1, MOST_CALLS, 10),
        "quorum": or_auto(whole(1, LARGEST_QUORUM, 3)),
        "agree": _agree,
    },
    above={},
    foreign={},
    check_together=_check_together,
    files=_files,
)
"""The keys of a job of this kind in its own section of job.toml."""
