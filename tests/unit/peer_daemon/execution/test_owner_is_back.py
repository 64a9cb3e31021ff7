"""What a client hears when the owner of the machine needs it."""

from __future__ import annotations

import pytest

from axonp2p.errors import Refused
from axonp2p.identity.peer_id import short
from axonp2p.jobs.messages import EndLease, HandBack, LeaseEnded, LeaseTaken, ToWorker, WorkerPaused, WorkerResumed
from tests.unit.peer_daemon.execution.test_lease_conversation import CLIENT, begin, heard

BUSY = "another program uses 87 % CPU (limit 25 %): firefox"


async def test_the_worker_stands_still_and_goes_on_and_the_client_hears_both(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    await peer.running_leases.stop_all(BUSY)
    assert worker.frozen
    paused, _ = await heard(session, WorkerPaused)
    assert paused.reason == BUSY
    await peer.running_leases.stop_all("another program uses 91 % CPU (limit 25 %): firefox")  # no news
    await peer.running_leases.let_go_on()
    assert not worker.frozen
    await heard(session, WorkerResumed)
    await session.send(ToWorker(), b"go on")
    await session.send(EndLease())
    assert (await heard(session, LeaseEnded))[0].reason == ""


async def test_a_worker_that_is_started_while_all_stand_still_stands_still_too(make_peer):
    peer = await make_peer()
    await peer.running_leases.stop_all(BUSY)
    session = await peer.dial()
    await session.send(make_peer.take_lease(peer))
    await heard(session, LeaseTaken)
    await heard(session, WorkerPaused)
    worker = await peer.workers.get()
    assert worker.frozen
    await session.close()


async def test_what_is_handed_back_at_once_is_told_to_the_client_and_to_the_owner_each_in_its_words(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    peer.running_leases.hand_back("its owner paused it until 14:10", 0, noted="paused by you until 14:10")
    told, _ = await heard(session, HandBack)
    assert (told.reason, told.seconds) == ("its owner paused it until 14:10", 0)
    assert (await heard(session, LeaseEnded))[0].reason == "its owner paused it until 14:10"
    assert worker.killed
    assert ("job ended", "digits after 0 rounds: handed back: paused by you until 14:10") in peer.noted


async def test_a_client_that_gives_back_in_time_is_not_said_to_have_ended_it(make_peer):
    peer = await make_peer()
    session, _ = await begin(peer, make_peer.take_lease(peer))
    peer.running_leases.hand_back("its owner paused it", 60, noted="paused by you until you resume it")
    await heard(session, HandBack)
    await session.send(EndLease())
    await heard(session, LeaseEnded)
    assert ("job ended", "digits after 0 rounds: handed back: paused by you until you resume it") in peer.noted


async def test_a_round_that_is_finished_may_end_before_its_time(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    for _ in range(3):  # said again at each look, told once
        peer.running_leases.hand_back("finishing one job, then pausing", 600)
    assert (await heard(session, HandBack))[0].seconds == 600
    assert not worker.killed
    await session.send(EndLease())
    assert (await heard(session, LeaseEnded))[0].reason == ""
    assert worker.killed


async def test_a_job_gets_the_data_that_it_names_if_the_owner_offers_it(make_peer):
    peer = await make_peer()
    session = await peer.dial()
    await session.send(make_peer.take_lease(peer, datasets=["holiday-pictures"]))
    with pytest.raises(Refused, match="does not offer the data holiday-pictures"):
        await session.receive(LeaseTaken)
    assert peer.noted == [
        ("job refused", f"digits of {short(CLIENT.peer_id)}: this peer does not offer the data holiday-pictures")
    ]


async def test_fewer_cores_hold_while_the_owner_is_there(make_peer):
    peer = await make_peer()
    session, worker = await begin(peer, make_peer.take_lease(peer))
    peer.running_leases.hold_to(1)
    assert worker.held_to == 1
    peer.running_leases.hold_to(0)
    assert worker.held_to == 0
    await session.send(EndLease())
    await heard(session, LeaseEnded)
