"""Each change of a message of a job changes the hash by which builds of different age refuse each other."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import msgspec
import pytest

from axonp2p.wire.codec import Message
from axonp2p.wire.schema import WORK_SCHEMA

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "write_messages_page"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("write_messages_page", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def made(**fields: Any) -> type[Message]:
    """A message type `Word` with these fields: a type, or a type and a default."""
    given = [(name, *value) if isinstance(value, tuple) else (name, value) for name, value in fields.items()]
    found: type[Message] = msgspec.defstruct("Word", given, bases=(Message,), tag=True, frozen=True, kw_only=True)
    return found


Small = Annotated[int, msgspec.Meta(ge=0, le=9)]
CHANGES = {
    "another name": made(counts=Small, text=str),
    "another type": made(count=float, text=str),
    "another limit": made(count=Annotated[int, msgspec.Meta(ge=0, le=10)], text=str),
    "another default": made(count=(Small, 1), text=str),
    "one field more": made(count=Small, text=str, more=(bool, False)),
    "one field less": made(count=Small),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_a_message_changes_the_hash(script: ModuleType, change: str) -> None:
    assert script.schema_of([made(count=Small, text=str)]) != script.schema_of([CHANGES[change]])


def test_the_same_messages_have_the_same_hash(script: ModuleType) -> None:
    assert script.schema_of([made(count=Small, text=str)]) == script.schema_of([made(count=Small, text=str)])


def test_the_build_knows_its_own_hash(script: ModuleType) -> None:
    assert WORK_SCHEMA in script.schema_file()
