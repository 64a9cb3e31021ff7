"""Whatever is said to what decides with a memory, in whatever order, ends in a value or in an error of the family."""

from __future__ import annotations

import enum
import importlib
import inspect
import random
import typing
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from axonp2p.blobs.pieces import PIECE_BYTES
from axonp2p.errors import AxonError
from axonp2p.kinds.map.reduce_tree import ReduceTree
from axonp2p.peers.capability import Capability, Need
from axonp2p.table.slots import Slots
from peer_daemon.lending.lending import Lending
from tests.fakes import make_offer
from tests.laboratory.message_values import CLOSED_PORT, CannotBuild, Values, as_message_types
from tests.rules.test_any_message import ROOT, deciding_files
from tracker.replication.replica import Replica
from tracker.table.table_index import TableIndex

SEEDS = 15
STEPS = 30

NOT_DRIVEN = {
    "axonp2p.training.tuning.link_statistics.LinkStatistics": "ours: it is asked about the choice that it made last",
    "tracker.table.index_columns.Columns": "a part of TableIndex, which is driven",
    "tracker.table.offer_profiles.Profiles": "a part of TableIndex, which is driven",
}
"""Classes that take messages and are not driven here, and why."""

PROMISED: dict[str, Callable[[Any, dict[str, Any]], bool]] = {
    "Assembly.file": lambda decider, _: decider.complete,
    "PieceFetch.data": lambda decider, _: decider.complete,
    "Memories.why_not": lambda _, given: bool(given["report"].marks),  # who committed to nothing is at fault before
    "Divergences.judge": lambda _, given: (  # `attempt` turns reports of other lengths away
        bool(given["reports"])
        and set(given["reports"]) | set(given["members"]) <= set(given["names"])
        and all(len(report.slices) == len(given["members"]) for report in given["reports"].values())
    ),
    "TableIndex.enter": lambda *_: False,  # what `prepare` gave
    "TableIndex.enter_many": lambda *_: False,
    "TableIndex.abandon": lambda *_: False,
}
"""What callers promise of a call; others are left out."""

ADDRESSES = [f"https://127.0.0.1:{CLOSED_PORT + number}#{'a' * 52}" for number in (0, 1)]


def _takes_messages(method: Callable[..., Any]) -> bool:
    hints = typing.get_type_hints(method, include_extras=True)
    return any(as_message_types(hints.get(name)) for name in list(inspect.signature(method).parameters)[1:])


def _methods(kind: type[Any]) -> dict[str, Callable[..., Any]]:
    return {name: value for name, value in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def deciders() -> Iterator[tuple[str, type[Any]]]:
    """Every public class of a deciding file with a method that takes a message."""
    for name in deciding_files():
        if not (ROOT / f"{name.replace('.', '/')}.py").exists():
            continue
        for own, kind in vars(importlib.import_module(name)).items():
            if own.startswith("_") or not inspect.isclass(kind) or kind.__module__ != name:
                continue
            if issubclass(kind, (msgspec.Struct, enum.Enum, Exception)) or getattr(kind, "_is_protocol", False):
                continue
            if any(map(_takes_messages, _methods(kind).values())):
                yield f"{name}.{own}", kind


DECIDERS = dict(deciders())


def _drawn(values: Values, call: Callable[..., Any], *, leave: int) -> dict[str, Any]:
    hints = typing.get_type_hints(call, include_extras=True)
    return {name: _fact(values, hints[name], name) for name in list(inspect.signature(call).parameters)[leave:]}


def _fact(values: Values, hint: Any, name: str) -> Any:
    """What is ours is as we make it: a tracker's address is one that was given, no job has no rounds."""
    if name == "configured":
        return list(ADDRESSES)
    if name == "address" and hint is str:
        return values.chance.choice(ADDRESSES)
    if name == "size":
        return values.chance.choice((0, 1, PIECE_BYTES, 2 * PIECE_BYTES + 1))
    if name in ("steps", "rounds"):
        return values.chance.choice((1, 7, 2**31))
    return values.any_of(hint, name)


def _made(seed: int) -> dict[Any, Callable[[Values], Any]]:
    """What no type says how to make."""
    index: Callable[[Values], TableIndex] = lambda values: TableIndex(random.Random(seed))  # noqa: E731
    return {
        random.Random: lambda _: random.Random(seed),
        TableIndex: index,
        ReduceTree: lambda values: ReduceTree(values.chance.choice((1, 5, 40)), fold=2),
        Slots: lambda _: Slots(),
        bytearray: lambda _: bytearray(3 * PIECE_BYTES),
        memoryview: lambda _: memoryview(bytearray(3 * PIECE_BYTES)),
        Replica: lambda values: Replica(index(values), Slots()),
        Lending: lambda values: Lending(make_offer()),
        Capability: lambda values: make_offer(free=values.chance.choice((0, 2))),
        Need: lambda values: Need(packages=values.chance.choice(((), ("torch>=2",), ("no-such",)))),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in DECIDERS if name not in NOT_DRIVEN])
def test_no_order_of_words_ends_by_anything_but_the_family(name: str) -> None:
    kind = DECIDERS[name]
    for seed in range(SEEDS):
        values = Values(random.Random(f"{name} {seed}"))
        values.made = _made(seed)
        try:
            decider = kind(**_drawn(values, kind.__init__, leave=1))
        except AxonError:
            continue
        _drive(values, decider)


def _drive(values: Values, decider: Any) -> None:
    methods = _methods(type(decider))
    for _ in range(STEPS):
        method = values.chance.choice(list(methods.values()))
        values.now += values.chance.choice((0.0, 0.1, 3.0, 4000.0))
        try:
            given = _drawn(values, method, leave=1)
        except CannotBuild:
            continue
        promised = PROMISED.get(method.__qualname__)
        if promised and not promised(decider, given):
            continue
        try:
            came = method(decider, **given)
            if inspect.isgenerator(came):
                list(came)
        except AxonError:
            continue


def test_what_is_left_out_is_there_and_has_a_reason() -> None:
    assert all(name in DECIDERS and reason for name, reason in NOT_DRIVEN.items())
    assert len(DECIDERS) > 20
