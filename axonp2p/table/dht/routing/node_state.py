"""The contacts that a node knew when it stopped, in a JSON file: never a pickle, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec

from axonp2p.files import write_whole
from axonp2p.transport.messages import Address
from axonp2p.wire.json_form import decode_json
from axonp2p.wire.quantities import UnixMoment

MOST_SAVED = 200
LARGEST_FILE = 64 * 1024
FORGOTTEN_AFTER_S = 30 * 86400
"""A contact not heard for a month is not worth a question."""


class SavedContact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node that had proved itself."""

    address: Address
    """HOST:PORT."""
    heard: UnixMoment
    """When it last answered, Unix seconds."""


class NodeState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    contacts: Annotated[list[SavedContact], msgspec.Meta(max_length=MOST_SAVED)]
    """Latest heard first."""


def save_state(path: Path, contacts: Iterable[SavedContact]) -> None:
    """Keep the latest heard `MOST_SAVED` contacts. Raises OSError as writing does."""
    latest = sorted(contacts, key=lambda contact: -contact.heard)[:MOST_SAVED]
    write_whole(path, json.dumps(msgspec.to_builtins(NodeState(latest)), indent=1).encode())


def load_state(path: Path, now: float) -> list[SavedContact]:
    """The saved contacts that are not too old at `now` (Unix seconds), latest heard first.

    None when there is no file, or one that is no such file: a node joins without it too, and writes a new one.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        state = decode_json(content, NodeState) if len(content) <= LARGEST_FILE else NodeState([])
    except (OSError, msgspec.DecodeError):
        return []
    return [contact for contact in state.contacts if now - contact.heard < FORGOTTEN_AFTER_S]
