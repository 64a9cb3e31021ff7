"""The whole daemon in this process: what ends one of its tasks ends neither the daemon nor the task."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from axonp2p.identity.certificate_bytes import fingerprint_text
from axonp2p.settings import PeerSettings
from axonp2p.transport.dial_policy import NOT_REACHED
from peer_daemon import app
from peer_daemon.app import Peer
from peer_daemon.earnings.log_looker import LogLooker
from peer_daemon.lending.offer import LendingLimits, MeasuredMachine
from tests.fakes import NOW, fails_once, key_of


async def _machine(home: Path, limits: LendingLimits) -> MeasuredMachine:
    return MeasuredMachine(cores=2, memory_mb=4096, disk_mb=4096, gflops=1.0, python="3.11.7", packages={})


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Peer:
    """Not started; of this machine it looks at nothing, and nobody is there to hear of it."""
    monkeypatch.setattr(app, "look_at_machine", _machine)
    monkeypatch.setattr(app, "why_no_sandbox", lambda: "no job runs in this test")
    monkeypatch.setattr(app, "own_territory", lambda: None)
    nobody = f"https://127.0.0.1:9#{fingerprint_text(bytes(32))}"
    return Peer(
        tmp_path, PeerSettings(trackers=[nobody], listen="127.0.0.1:0", dht=False, lan=False, map_port=False, page="")
    )


async def test_a_mistake_of_ours_in_a_task_ends_neither_the_daemon_nor_the_task(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
):
    again = fails_once(monkeypatch, LogLooker)
    await peer.start()
    broken, waiting = asyncio.create_task(peer.until_broken()), asyncio.create_task(again.wait())
    try:
        async with asyncio.timeout(20):
            await asyncio.wait([waiting, broken], return_when=asyncio.FIRST_COMPLETED)
        assert waiting.done()
        assert not broken.done()
    finally:
        waiting.cancel()
        broken.cancel()
        await peer.stop()


async def test_tokens_of_a_tracker_that_was_only_learnt_open_no_door(peer: Peer):
    operator, stranger = key_of("operator").peer_id, key_of("stranger").peer_id
    health = peer._lines.health
    health.learn("https://10.1.0.1:7070", NOW, stranger)
    await peer.start()
    try:
        assert peer._leases.trackers(NOW) == frozenset()
        health.hear_vouching(health.addresses[0], operator, None, NOW)
        assert peer._leases.trackers(NOW) == {operator}
    finally:
        await peer.stop()


async def test_no_client_hears_why_a_volunteer_did_not_reach_a_member(peer: Peer):
    await peer.start()
    try:
        assert peer._door._context.dials.told("connection refused") == NOT_REACHED
    finally:
        await peer.stop()
