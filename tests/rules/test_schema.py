"""Each change of a message of a job changes the hash by which builds of different age refuse each other."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import msgpack
import msgspec
import pytest

from axonp2p.errors import VersionMismatch
from axonp2p.jobs.kinds import KINDS
from axonp2p.jobs.messages import TakeLease
from axonp2p.peers.capability import Need
from axonp2p.wire.codec import Message, encode
from axonp2p.wire.schema import IN_ROWS, SCHEMAS, check_schema, row_differs

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "write_messages_page"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("write_messages_page", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def made(*, optional: bool = False, **fields: Any) -> type[Message]:
    """A message type `Word` with these fields: a type, or a type and a default."""
    given = [(name, *value) if isinstance(value, tuple) else (name, value) for name, value in fields.items()]
    found: type[Message] = msgspec.defstruct(
        "Word", given, bases=(Message,), tag=True, frozen=True, kw_only=True, omit_defaults=optional
    )
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


def test_the_build_knows_its_own_hashes(script: ModuleType) -> None:
    assert script.schema_file() == script.SCHEMA.read_text()
    assert set(SCHEMAS) == set(KINDS)
    assert IN_ROWS in SCHEMAS


def test_an_optional_field_changes_no_hash(script: ModuleType) -> None:
    assert script.schema_of([made(optional=True, count=Small)]) == script.schema_of(
        [made(optional=True, count=Small, more=(bool, False))]
    )
    assert script.schema_of([made(optional=True, count=Small)]) != script.schema_of(
        [made(optional=True, count=Small, more=bool)]
    )


def test_a_refusal_names_both_versions() -> None:
    with pytest.raises(VersionMismatch) as caught:
        check_schema("0" * 16, "train")
    assert "0" * 16 in caught.value.cause
    assert SCHEMAS["train"] in caught.value.cause
    with pytest.raises(VersionMismatch) as caught:
        check_schema("0" * 16, "fold")
    assert "knows no jobs of the kind 'fold', only: train" in caught.value.cause
    check_schema(SCHEMAS["train"], "train")


def test_a_row_tells_of_the_one_kind_that_it_has_room_for() -> None:
    assert row_differs("", IN_ROWS)
    assert row_differs("0" * 16, IN_ROWS)
    assert not row_differs(SCHEMAS[IN_ROWS], IN_ROWS)
    assert not row_differs("0" * 16, "fold")


PLAIN = [
    (Need(), set()),
    (Need(cores=2, packages=["numpy"]), {"cores", "packages"}),
    (
        TakeLease(token=b"", job="j", kind="train", cores=1, memory_mb=0),
        {"type", "token", "job", "kind", "cores", "memory_mb"},
    ),
]


@pytest.mark.parametrize(("message", "fields"), PLAIN)
def test_a_plain_job_says_no_field_that_it_does_not_use(message: Message, fields: set[str]) -> None:
    """Programs of any age read it, and each refuses a field that it does not know."""
    assert set(msgpack.unpackb(encode(message))) == fields
