"""What a client's dials tell, and where they go, when a peer's row names an address."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from axonp2p.client.leasing.lease_sides import Reservation
from axonp2p.client.leasing.take_lease import LeaseRequest, take_lease
from axonp2p.client.leasing.token_source import TokenSource
from axonp2p.errors import AxonError, Unreachable
from axonp2p.reservation.reserving import new_uuid
from axonp2p.transport.dial_policy import NO_ADDRESS, NOT_REACHED, DialPolicy
from tests.fakes import HERE, ManualClock, key_of, make_row

CLIENT, ADA = key_of("client"), key_of("ada")
NOBODY_THERE = "127.0.0.1:9"
HOSTED = DialPolicy(lambda: ["127.0.0.1"], tells_why=False)
PUBLIC = DialPolicy(lambda: ["8.8.8.8"])


async def asked_for_a_token(dials: DialPolicy) -> AxonError:
    table: Any = SimpleNamespace(trackers=None, dials=dials)
    row = make_row(ADA, addresses=[NOBODY_THERE], issues_tokens=True)
    found = await TokenSource(CLIENT, table, ManualClock(), "train", 60).of_the_peer(row)
    assert isinstance(found, AxonError)
    return found


async def asked_for_a_lease(dials: DialPolicy) -> AxonError:
    row, token = make_row(ADA, addresses=[NOBODY_THERE]), SimpleNamespace()
    promise, wanted = Reservation(new_uuid(), token, "", ""), LeaseRequest("job-1", "train", 1, 1)  # type: ignore[arg-type]
    with pytest.raises(Unreachable) as caught:
        await take_lease(CLIENT, dials, row, promise, wanted, name="ada")
    return caught.value


@pytest.mark.parametrize("asked_for", [asked_for_a_token, asked_for_a_lease])
async def test_a_strangers_hosted_job_hears_only_that_a_peer_was_not_reached(asked_for: Any) -> None:
    assert "connection refused" in (await asked_for(HERE)).in_a_line
    assert (await asked_for(HOSTED)).cause == NOT_REACHED


@pytest.mark.parametrize("asked_for", [asked_for_a_token, asked_for_a_lease])
async def test_an_address_that_may_not_be_dialled_is_not(asked_for: Any) -> None:
    assert (await asked_for(PUBLIC)).cause == NO_ADDRESS
