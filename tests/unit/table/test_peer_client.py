"""Rows are asked of peers where they may be dialled; a stranger's hosted job hears nothing of what answered."""

from __future__ import annotations

import pytest

from axonp2p.errors import AxonError
from axonp2p.table.peer_client import fetch_rows
from axonp2p.transport.dial_policy import NO_ADDRESS, NOT_REACHED, DialPolicy
from axonp2p.transport.ways import BareWhereabouts
from tests.fakes import HERE, NOW, key_of

ADA = key_of("ada").peer_id


@pytest.mark.parametrize(
    ("dials", "heard"),
    [
        (HERE, "connection refused"),
        (DialPolicy(lambda: ["127.0.0.1"], tells_why=False), NOT_REACHED),
        (DialPolicy(lambda: ["8.8.8.8"]), NO_ADDRESS),
    ],
)
async def test_what_is_told_of_a_peer_that_is_not_there(dials: DialPolicy, heard: str) -> None:
    found = (await fetch_rows([BareWhereabouts(ADA, ["127.0.0.1:9"], bytes(32))], dials, now=NOW))[ADA]
    assert isinstance(found, AxonError)
    assert found.cause == heard
