"""Whatever a message's types allow, what is decided from it ends in a value or in an error of the family."""

from __future__ import annotations

import importlib
import inspect
import random
import re
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from axonp2p.blobs.pieces import PieceBook, book_of
from axonp2p.errors import AxonError
from axonp2p.training.exchange.terms import Lengths
from axonp2p.training.state_transfer.pieces import InPieces
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.wire.codec import Message, decode_as, encode
from axonp2p.wire.envelope import Signable, Signed
from tests.fakes import HERE
from tests.laboratory.message_values import CannotBuild, Values, as_message_types
from tests.rules.test_message_bounds import STRUCTS

ROOT = Path(__file__).parent.parent.parent
SEEDS = 25
_TIME_LIMIT = 2**22

NOT_CALLED = {
    "axonp2p.wire.envelope.open_signed": "called with every signed type by those that open it",
    "axonp2p.wire.envelope.encode_signed": "ours: what it signs was made here",
    "axonp2p.table.dht.records.compact.sign_compact": "ours: a peer signs its own row, and no other",
    "axonp2p.training.tuning.costs.exchange_s": "ours: facts of one job, made together",
    "axonp2p.training.tuning.costs.exchange_bytes": "ours: facts of one job, made together",
    "axonp2p.training.state_transfer.model_layout.pack_layout": "ours: a worker tells of its own model",
    "axonp2p.client.packages.plan.has_all": "ours: the requirements of a job file, which were read as such",
    "axonp2p.wire.frame.pack_frame": "ours: what it packs was made here",
    "axonp2p.wire.frame.frame_head": "ours: what it packs was made here",
}
"""Functions that take messages and are not called here, and why."""


@dataclass(frozen=True)
class _Lengths:
    values: int
    parameters: int


@dataclass(frozen=True)
class _State:
    pieces: PieceBook
    file: memoryview


def _lengths(values: Values) -> Lengths:
    parameters = values.chance.choice((1, 1000, 2**33))
    return _Lengths(parameters + values.chance.choice((0, 7)), parameters)


def _state(values: Values) -> InPieces:
    data = memoryview(values.chance.randbytes(values.chance.choice((0, 1, 3000))))
    return _State(book_of(data), data)


def deciding_files() -> list[str]:
    """Modules whose file decides, as docs/house.md marks them."""
    found, room = [], ""
    for line in (ROOT / "docs" / "house.md").read_text().splitlines():
        if line.startswith("## "):
            room = line[3:].replace("/", ".")
        elif row := re.match(r"\| `(\w+)\.py` \| decides \|", line):
            found.append(f"{room}.{row[1]}")
    return found


def functions() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Every public pure function that takes a message, with the types of its parameters."""
    for name in deciding_files():
        if not (ROOT / f"{name.replace('.', '/')}.py").exists():
            continue
        module = importlib.import_module(name)
        for own, value in vars(module).items():
            if own.startswith("_") or not inspect.isfunction(value) or value.__module__ != name:
                continue
            hints = typing.get_type_hints(value, include_extras=True)
            taken = {parameter: hints.get(parameter, Any) for parameter in inspect.signature(value).parameters}
            if any(as_message_types(hint) for hint in taken.values()):
                yield f"{name}.{own}", value, taken


FUNCTIONS = {name: (function, taken) for name, function, taken in functions()}
MESSAGES = [kind for kind in STRUCTS if issubclass(kind, Message) and kind not in (Message, Signable, Signed)]


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in NOT_CALLED])
def test_no_function_ends_by_anything_but_the_family(name: str) -> None:
    function, taken = FUNCTIONS[name]
    for seed in range(SEEDS):
        values = Values(random.Random(f"{name} {seed}"))
        values.made = {Lengths: _lengths, InPieces: _state, DialPolicy: lambda _: HERE}
        given = {parameter: values.any_of(hint, parameter) for parameter, hint in taken.items()}
        try:
            function(**given)
        except AxonError:
            continue
        except CannotBuild as error:
            pytest.fail(f"say in message_values how {error} is made, or in NOT_CALLED why it need not be")


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: f"{kind.__module__}.{kind.__qualname__}")
def test_every_message_goes_both_ways_and_its_own_words_hold(kind: type[Message]) -> None:
    properties = [name for name, value in inspect.getmembers(kind) if isinstance(value, property)]
    for seed in range(SEEDS):
        values = Values(random.Random(f"{kind.__name__} {seed}"))
        message = values.message(kind)
        assert decode_as(encode(message), kind, _TIME_LIMIT) == message
        for name in properties:
            try:
                getattr(message, name)
            except AxonError:
                continue


def test_what_is_left_out_is_there_and_has_a_reason() -> None:
    assert all(name in FUNCTIONS and reason for name, reason in NOT_CALLED.items())
    assert len(FUNCTIONS) > 50
