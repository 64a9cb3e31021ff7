from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager

import msgspec
import pytest

from axonp2p.errors import PortTaken, SettingsError
from axonp2p.identity.peer_id import public_key_of
from axonp2p.table.dht.records.compact import CompactRow, open_compact, pack_addresses, withdrawal_of
from axonp2p.table.dht.routing.node_state import SavedContact, load_state, save_state
from peer_daemon.discovery.dht_side import LONGEST_RETRY_S, MOST_OFFERED, DhtSide, is_due
from tests.fakes import NOW, ManualClock, key_of

KEY = key_of("peer")


def compact(sequence: int = 1, expires: int = int(NOW) + 600, **changes) -> CompactRow:
    usual = {
        "public_key": public_key_of(KEY.peer_id),
        "packed_addresses": pack_addresses(["192.0.2.7:7071"]),
        "dht": 0,
        "certificate": b"c" * 32,
        "cores": 1,
        "memory_mb": 1024,
        "gpu_memory_mb": 0,
        "tags": (),
        "flags": 1,
        "packed_relays": (),
    }
    return CompactRow(sequence=sequence, expires=expires, **(usual | changes))


class FakeNode:
    """A node whose network is the test."""

    def __init__(self):
        self.serves = False
        self.contact_count = 0
        self.own_address_seen = None
        self.answers: set[str] = set()
        self.asked: list[list[str]] = []
        self.published: list[CompactRow] = []
        self.holders = 3
        self.taken_port = 0
        self.stopped = False

    async def listen(self, host, port):
        if port and port == self.taken_port:
            raise PortTaken("taken")
        return port or 40_000

    async def bootstrap(self, contacts):
        self.asked.append(list(contacts))
        self.contact_count = len(self.answers & set(self.asked[-1])) or self.contact_count
        return self.contact_count

    async def publish(self, data):
        self.published.append(open_compact(data, NOW))
        return self.holders

    def contacts(self, count):
        return sorted(self.answers)[: min(count, self.contact_count)]

    async def stop(self):
        self.stopped = True


class Setting:
    """A side of the DHT that a test lets run until it has nothing to do."""

    def __init__(self, folder):
        self.node = FakeNode()
        self.clock = ManualClock()
        self.state = folder / "dht.json"
        self.rounds = 0
        self._met = asyncio.Event()
        self.side = DhtSide(self.node, KEY, self.state, self.clock, random.Random(1), self._meet)

    async def _meet(self):
        self.rounds += 1
        self._met.set()

    async def round(self):
        """One round, begun by the test."""
        self._met.clear()
        self.side.wake()
        async with asyncio.timeout(10):
            await self._met.wait()

    @asynccontextmanager
    async def running(self):
        task = asyncio.create_task(self.side.run())
        try:
            async with asyncio.timeout(10):
                await self._met.wait()
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def setting(tmp_path):
    return Setting(tmp_path)


async def test_it_joins_through_whom_it_is_told_of_and_publishes_the_row(setting):
    setting.node.answers = {"192.0.2.1:7071"}
    setting.side.offer(["192.0.2.1:7071", "192.0.2.2:7071"])
    setting.side.tell(compact())
    async with setting.running():
        await setting.round()
    assert setting.node.asked == [["192.0.2.1:7071", "192.0.2.2:7071"]]
    assert setting.node.published == [compact()]
    assert setting.side.holders == 3


async def test_nobody_is_asked_twice_while_somebody_is_known(setting):
    setting.node.answers = {"192.0.2.1:7071"}
    setting.side.offer(["192.0.2.1:7071"])
    async with setting.running():
        setting.side.offer(["192.0.2.1:7071"])
        await setting.round()
        setting.side.offer(["192.0.2.3:7071"])
        await setting.round()
    assert setting.node.asked == [["192.0.2.1:7071"], ["192.0.2.3:7071"]]


async def test_where_nobody_answers_it_tries_again_less_and_less_often(setting):
    setting.side.offer(["192.0.2.1:7071"])
    async with setting.running():
        waits = []
        for _ in range(9):
            began = setting.clock.time
            asked = len(setting.node.asked)
            while len(setting.node.asked) == asked:
                setting.clock.time += 0.5
                await setting.round()
            waits.append(setting.clock.time - began)
        assert waits[0] <= 2
        assert max(waits) <= LONGEST_RETRY_S * 1.25 + 1
        assert waits[-1] >= LONGEST_RETRY_S * 0.75
        # Somebody new is asked at once.
        setting.node.answers = {"192.0.2.9:7071"}
        setting.side.offer(["192.0.2.9:7071"])
        await setting.round()
    assert setting.node.contact_count == 1


async def test_the_row_waits_for_the_first_contact_unless_others_ask_this_node(setting):
    setting.side.tell(compact())
    async with setting.running():
        await setting.round()
        assert setting.node.published == []
        assert setting.side.is_the_first
        setting.node.serves = True
        await setting.round()
    assert setting.node.published == [compact()]


async def test_the_row_is_put_again_when_it_says_something_new_or_gets_old(setting):
    setting.node.contact_count = 3
    setting.side.tell(compact())
    async with setting.running():
        await setting.round()
        setting.side.tell(compact(2, int(NOW) + 700))
        await setting.round()
        assert [row.sequence for row in setting.node.published] == [1]
        setting.side.tell(compact(3, int(NOW) + 710, flags=3))
        await setting.round()
        setting.clock.time += 400
        setting.side.tell(compact(4, int(NOW) + 1010, flags=3))
        await setting.round()
    assert [row.sequence for row in setting.node.published] == [1, 3, 4]


async def test_a_row_that_few_hold_is_put_again_once_more_are_known(setting):
    setting.node.contact_count, setting.node.holders = 1, 1
    setting.side.tell(compact())
    async with setting.running():
        await setting.round()
        setting.node.contact_count = 2
        await setting.round()
        assert len(setting.node.published) == 1
        setting.node.contact_count = 3
        await setting.round()
        await setting.round()
    assert len(setting.node.published) == 2


async def test_a_row_that_nobody_took_is_put_again(setting):
    setting.node.contact_count, setting.node.holders = 3, 0
    setting.side.tell(compact())
    async with setting.running():
        setting.node.holders = 2
        setting.clock.time += 5
        await setting.round()
    assert len(setting.node.published) == 2


async def test_who_leaves_takes_its_row_back(setting):
    setting.node.contact_count = 3
    setting.side.tell(compact())
    async with setting.running():
        await setting.round()
    await setting.side.withdraw(withdrawal_of(compact(), 2, int(NOW) + 600))
    assert setting.node.published[-1].withdrawn


async def test_what_was_never_published_is_not_taken_back(setting):
    await setting.side.withdraw(withdrawal_of(compact(), 2, int(NOW) + 600))
    await setting.side.withdraw(None)
    assert setting.node.published == []


async def test_whom_it_met_it_asks_again_after_a_restart(setting, tmp_path):
    save_state(setting.state, [SavedContact("192.0.2.1:7071", NOW)])
    assert await setting.side.listen("127.0.0.1", 7071) == 7071
    setting.node.answers = {"192.0.2.1:7071", "192.0.2.2:7071"}
    async with setting.running():
        assert setting.node.asked == [["192.0.2.1:7071"]]
    setting.node.contact_count = 2
    setting.clock.time += 60
    await setting.side.stop()
    assert setting.node.stopped
    assert {one.address for one in load_state(setting.state, NOW)} == setting.node.answers


async def test_a_run_in_which_it_met_nobody_does_not_forget_the_others(setting):
    save_state(setting.state, [SavedContact("192.0.2.1:7071", NOW)])
    await setting.side.stop()
    assert len(load_state(setting.state, NOW)) == 1


async def test_a_port_that_another_program_has_is_replaced_by_a_free_one(setting):
    setting.node.taken_port = 7071
    assert await setting.side.listen("127.0.0.1", 7071) == 40_000


async def test_names_are_looked_up_and_nonsense_is_nobody(setting):
    setting.side.offer(["localhost:7071", "192.0.2.1:70000", "nonsense"])
    async with setting.running():
        pass
    assert "127.0.0.1:7071" in setting.node.asked[0]
    assert not any("70000" in address or "nonsense" in address for address in setting.node.asked[0])


def test_what_is_offered_is_bounded(setting):
    setting.side.offer(f"192.0.2.1:{port}" for port in range(1, 1000))
    assert len(setting.side._offered) == MOST_OFFERED


@pytest.mark.parametrize(
    ("published", "passed", "due"),
    [(None, 0, True), (compact(1), 0, False), (compact(1, dht=7071), 0, True), (compact(1), 300, True)],
)
def test_when_the_row_is_due(published, passed, due):
    newest = msgspec.structs.replace(compact(2), expires=int(NOW) + passed + 600)
    assert is_due(newest, published, NOW + passed) is due


async def test_a_host_that_cannot_be_listened_at_is_said(setting, monkeypatch):
    async def refuse(host, port):
        raise SettingsError("no such host")

    monkeypatch.setattr(setting.node, "listen", refuse)
    with pytest.raises(SettingsError):
        await setting.side.listen("192.0.2.1", 0)
