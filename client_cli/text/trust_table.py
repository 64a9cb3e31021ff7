"""What `axon trust` shows: a line for each key whose work was checked. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from axonp2p.client.storage.trust_book import KnownKey
from axonp2p.errors import NotFound
from axonp2p.identity.peer_id import short
from axonp2p.plain_text import columns, plural
from client_cli.text.render import age_text


def trust_text(known: Sequence[KnownKey], names: Mapping[str, str], *, now: float) -> str:
    """The table; `names` are those that keys had in jobs. `now` is Unix time."""
    if not known:
        return "No checks yet: the work of peers is checked while a job trains."
    rows = [[names.get(one.peer, "-"), short(one.peer), one.in_words, str(one.checks), _why(one, now)] for one in known]
    table = columns(["peer", "id", "trust", "checks", ""], rows, right=(3,))
    convicted = sum(one.convicted_at is not None for one in known)
    return f"{table}\n{plural(len(known), 'peer')}, {convicted} convicted"


def known_data(one: KnownKey) -> dict[str, Any]:
    """The same as data."""
    return dataclasses.asdict(one) | {"trust": one.in_words}


def find_one(known: Sequence[KnownKey], beginning: str) -> KnownKey:
    """The key that begins like this. Raises `NotFound`, also when several do."""
    found = [one for one in known if one.peer.startswith(beginning.lower())]
    if len(found) != 1:
        several = f"{len(found)} peers begin" if found else "no peer that was checked begins"
        raise NotFound(f"{several} with {beginning!r}", fix="axon trust      (shows their ids)")
    return found[0]


def _why(one: KnownKey, now: float) -> str:
    if one.convicted_at is None:
        return ""
    return f"{age_text(now - one.convicted_at)} ago in {one.job}: {one.why}"
