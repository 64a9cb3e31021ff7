"""The part that all events of a job have in common: they are small, frozen, and lines of JSON that name themselves."""

from __future__ import annotations

import re
from typing import ClassVar

import msgspec

from axonp2p.wire.quantities import UnixMoment


def _in_snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=_in_snake_case):
    """The base of all of them; in JSON the field `event` holds the class's name in snake case."""

    passing: ClassVar[bool] = False
    """Whether the next moment makes it worthless: it is shown, and not kept."""

    at: UnixMoment = 0.0
    """When it happened, in Unix seconds; 0: when it is told."""
