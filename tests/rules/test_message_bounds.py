"""Every quantity that somebody else chooses has both its bounds beside its type, whatever message it travels in."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect as shapes

from axonp2p.wire.codec import Message

ROOT = Path(__file__).parent.parent.parent
PROGRAMS = ("axonp2p", "tracker", "peer_daemon", "client_cli")
_DEFINES = re.compile(r"^class \w+\((Message|Signable|msgspec\.Struct|Event)\b", re.M)

OWN_WORDS = {
    "axonp2p.settings": "the owner's own config.toml, whose numbers are checked one by one when it is read",
    "peer_daemon.control.status": "said by the daemon to its own owner",
    "axonp2p.sandbox.attacks.attack": "said by our own attacks to our own doctor",
}
"""Structs that nobody else fills."""
BY_THE_FILE = ("axonp2p.client.", "axonp2p.kinds.train.", "axonp2p.kinds.run.record", "axonp2p.kinds.map.record")
"""The files of a client's jobs: their texts and lists are bounded by how much of a file is read, numbers one by one."""


def struct_types() -> list[type[msgspec.Struct]]:
    """Every struct that any of the programs defines, but the bases that travel in nothing."""
    for program in PROGRAMS:
        for file in sorted((ROOT / program).rglob("*.py")):
            if _DEFINES.search(file.read_text()):
                importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    found: dict[type[msgspec.Struct], None] = {}
    waiting: list[Any] = [msgspec.Struct]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            if kind.__module__.split(".")[0] in PROGRAMS and kind not in found:
                found[kind] = None
            waiting.append(kind)
    return sorted(found, key=lambda kind: (kind.__module__, kind.__qualname__))


def unbounded(shape: Any, where: str) -> Iterator[str]:
    """Each part of a type, by its place, that lets in more than a named least and most."""
    match shape:
        case shapes.IntType() | shapes.FloatType():
            low = shape.ge if shape.ge is not None else shape.gt
            high = shape.le if shape.le is not None else shape.lt
            if low is None or high is None:
                yield f"{where}: {type(shape).__name__} without a {'least' if low is None else 'most'}"
        case shapes.StrType() | shapes.BytesType():
            if shape.max_length is None and not _is_bounded_pattern(getattr(shape, "pattern", None)):
                yield f"{where}: {type(shape).__name__} of any length"
            if (pattern := getattr(shape, "pattern", None)) and pattern.endswith("$"):
                yield f"{where}: its pattern lets a line end pass"
        case shapes.ListType() | shapes.SetType() | shapes.FrozenSetType() | shapes.VarTupleType():
            if shape.max_length is None:
                yield f"{where}: a list of any length"
            yield from unbounded(shape.item_type, f"{where}[]")
        case shapes.TupleType():
            for number, item in enumerate(shape.item_types):
                yield from unbounded(item, f"{where}[{number}]")
        case shapes.DictType():
            if shape.max_length is None:
                yield f"{where}: a map of any size"
            yield from unbounded(shape.key_type, f"{where} keys")
            yield from unbounded(shape.value_type, f"{where} values")
        case shapes.UnionType():
            for part in shape.types:
                yield from unbounded(part, where)
        case shapes.AnyType():
            yield f"{where}: anything"


def _is_bounded_pattern(pattern: str | None) -> bool:
    """Whether no part of a pattern repeats without end, and it is held at both ends."""
    if pattern is None or not pattern.startswith("^") or not pattern.endswith(r"\Z"):
        return False
    return not re.search(r"(?<!\\)[*+]|\{\d*,\}", pattern)


STRUCTS = [kind for kind in struct_types() if kind.__module__ not in OWN_WORDS]


def test_there_are_messages_to_look_at() -> None:
    assert len([kind for kind in STRUCTS if issubclass(kind, Message)]) > 120


@pytest.mark.parametrize("kind", STRUCTS, ids=lambda kind: f"{kind.__module__}.{kind.__qualname__}")
def test_every_field_is_bounded(kind: type[msgspec.Struct]) -> None:
    info = shapes.type_info(kind)
    assert isinstance(info, shapes.StructType)
    found = [line for field in info.fields for line in unbounded(field.type, field.name)]
    if kind.__module__.startswith(BY_THE_FILE):
        found = [line for line in found if ": IntType" in line or ": FloatType" in line]
    assert not found, "\n".join(found)
