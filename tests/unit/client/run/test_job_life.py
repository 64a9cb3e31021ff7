"""A job with too few peers: for how long it waits for others, and whom it takes again first."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from axonp2p.client.leasing.hiring import PeerRequest
from axonp2p.client.run import replacements
from axonp2p.client.run.job_life import JobLife
from axonp2p.client.run.replacements import Replacements
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import PeerRecord
from axonp2p.client.storage.kept_bundle import kept_bundle, spec_of
from tests.fakes import AtOnce, ManualClock, key_of
from tests.unit.client.storage.test_damaged_folder import write_job


def life_of(home: Path, *, rounds: int, wait: int) -> tuple[JobLife, ManualClock]:
    folder, clock = write_job(home), ManualClock(100.0)
    record = msgspec.structs.replace(folder.read(), round=rounds)
    spec = spec_of(record)
    spec = msgspec.structs.replace(spec, need=msgspec.structs.replace(spec.need, wait=wait))
    journal = JobJournal(folder, record, clock, lambda event: None, AtOnce())
    means: Any = SimpleNamespace(clock=clock)
    return JobLife(means, journal, spec, kept_bundle(folder, record, spec)), clock


def test_before_the_first_round_only_lost_lines_are_waited_for_and_not_for_ever(tmp_path: Path) -> None:
    life, clock = life_of(tmp_path, rounds=0, wait=300)
    cut_off: Any = SimpleNamespace(cut_off={0: None})
    crashed: Any = SimpleNamespace(cut_off={})
    assert not life._may_wait(crashed)
    assert life._may_wait(cut_off)
    clock.time += 299
    assert life._may_wait(cut_off)
    clock.time += 2
    assert not life._may_wait(cut_off)
    life.leaving = True
    assert not life._may_wait(cut_off)


def test_after_a_round_every_loss_is_waited_for_unless_it_is_not_wished(tmp_path: Path) -> None:
    crashed: Any = SimpleNamespace(cut_off={})
    for name, wait in (("waits", 300), ("not", 0)):
        (tmp_path / name).mkdir()
        assert life_of(tmp_path / name, rounds=1, wait=wait)[0]._may_wait(crashed) is bool(wait)


async def test_who_was_cut_off_is_taken_again_before_others_are_looked_for(tmp_path: Path) -> None:
    life, _ = life_of(tmp_path, rounds=0, wait=300)
    said: list[str] = []
    stays, lost, back = (SimpleNamespace(name=name, taken=SimpleNamespace(waited=True)) for name in "abc")

    class Crew:
        leases: Any = {0: lost, 1: stays}
        cut_off: Any = {0: lost}
        present: Any = {1: stays}
        next_rank = 2

        def regained(self, rank: int, lease: Any) -> None:
            said.append(f"{rank} is {lease.name}")

        def ask_again(self, ranks: list[int]) -> None:
            said.append(f"asked again: {ranks}")

    class Staffing:
        def __init__(self) -> None:
            self.leases: dict[int, Any] = {}

        async def take_again(self, cut_off: dict[int, Any]) -> None:
            self.leases |= dict.fromkeys(cut_off, back)

        async def fill(self, seconds: float) -> None:
            said.append(f"there: {sorted(self.leases)}")

        def records(self, new: dict[int, Any]) -> list[Any]:
            return []

    crew, staffing = Crew(), Staffing()
    await life._fill_again(crew, staffing)  # type: ignore[arg-type]
    assert said == ["there: [0, 1]", "0 is c", "asked again: [0]"]


async def test_slots_behind_a_relay_that_died_are_given_back_before_anybody_is_hired_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replacements, "TOGETHER_S", 0.0)
    life, _ = life_of(tmp_path, rounds=1, wait=300)
    said: list[str] = []
    hiring = asyncio.Event()

    class Crew:
        cut_off: Any = {0: None}
        leases: Any = {}
        present: Any = {}
        next_rank = 1

        async def give_back_cut_off(self) -> None:
            said.append("given back")

    class Hiring:
        hired: Any = ()

        def __init__(self, *_: Any) -> None:
            """Nobody comes."""

        async def hire(self) -> None:
            said.append("looked for others")
            hiring.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(replacements, "Hiring", Hiring)
    crew: Any = Crew()
    running = asyncio.create_task(Replacements(life._means, life._request(), crew, life._journal, deliver=None).run())  # type: ignore[arg-type]
    async with asyncio.timeout(20):
        await hiring.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert said == ["given back", "looked for others"]


async def test_who_replaces_a_peer_has_none_of_the_names_that_the_job_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life, _ = life_of(tmp_path, rounds=1, wait=300)
    key = key_of("heron").peer_id
    life._journal.joined([PeerRecord(name="heron", peer=key, rank=0, reservation="r", rtt_s=0.0)], ["r"], "")
    asked: list[PeerRequest] = []

    class Hiring:
        hired: Any = ()

        def __init__(self, means: Any, request: PeerRequest, *_: Any) -> None:
            asked.append(request)

        async def hire(self) -> None:
            """Nobody comes."""

    monkeypatch.setattr(replacements, "Hiring", Hiring)
    crew: Any = SimpleNamespace(leases={}, present={}, next_rank=1)
    await Replacements(life._means, life._request(), crew, life._journal, deliver=None)._hire(1)  # type: ignore[arg-type]
    assert asked[0].names == {key: "heron"}
