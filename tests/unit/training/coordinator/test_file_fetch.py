"""Weights on their way home, when members behave and when they do not."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import pytest

from axonp2p.blobs.pieces import book_of
from axonp2p.errors import JobFailed
from axonp2p.training.coordinator import file_fetch
from axonp2p.training.coordinator.file_fetch import FileFetch
from axonp2p.training.messages import FilePart, SendFile
from axonp2p.training.state_transfer.file_parts import cut

MODEL, OTHER = bytes(range(256)) * 4000, b"other" * 100_000
SHA256, STATE = hashlib.sha256(MODEL).digest(), book_of(MODEL).name


class Members:
    """Members that send what they hold when they are asked, each in a task of its own."""

    def __init__(self, *files: bytes) -> None:
        self.files = dict(enumerate(files))
        self.asked: list[int] = []
        self.sent: Counter[int] = Counter()
        """Parts, by rank."""
        self.dies_after: dict[int, int] = {}
        self.lies: set[int] = set()
        self.still: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self.fetch = FileFetch(SendFile(state=STATE), self.ask, limit=2**21, still=self.still)

    def ask(self, rank: int, wanted: SendFile) -> None:
        self.asked.append(rank)
        self._tasks.append(asyncio.create_task(self._send(rank, wanted)))

    async def _send(self, rank: int, wanted: SendFile) -> None:
        data = self.files[rank]
        sha256 = b"l" * 32 if rank in self.lies else hashlib.sha256(data).digest()
        parts = cut("model", data, sha256)
        for number, (part, payload) in enumerate(parts if wanted.whole else islice(parts, 1)):
            if number >= self.dies_after.get(rank, 10**9):
                await self.fetch.lost(rank, f"member {rank} was killed")
                return
            self.sent[rank] += 1
            await self.fetch.heard(rank, part, payload)

    async def into(self, target: Path, members: Sequence[int] | None = None) -> bytes:
        async with asyncio.timeout(20):
            sha256 = await self.fetch.into(list(self.files) if members is None else members, target)
            await asyncio.gather(*self._tasks)  # nobody is left waiting to be heard
        return sha256


async def test_one_member_is_believed_when_there_is_only_one(tmp_path: Path) -> None:
    members = Members(MODEL)
    assert await members.into(tmp_path / "model") == SHA256
    assert (tmp_path / "model").read_bytes() == MODEL


async def test_all_members_are_compared_and_one_is_taken(tmp_path: Path) -> None:
    members = Members(MODEL, MODEL, MODEL)
    assert await members.into(tmp_path / "model") == SHA256
    assert (tmp_path / "model").read_bytes() == MODEL
    assert sorted(members.asked) == [0, 0, 1, 2]
    assert members.sent == {0: 1 + 4, 1: 1, 2: 1}, "the others' lines carry no file that nobody needs"


@pytest.mark.parametrize("odd", [0, 1, 2])
async def test_the_majority_is_taken_when_members_differ(tmp_path: Path, odd: int) -> None:
    files = [MODEL, MODEL, MODEL]
    files[odd] = OTHER
    assert await Members(*files).into(tmp_path / "model") == SHA256
    assert (tmp_path / "model").read_bytes() == MODEL


async def test_two_that_differ_cannot_be_decided(tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match="no majority"):
        await Members(MODEL, OTHER).into(tmp_path / "model")


async def test_a_member_that_dies_midway_is_replaced(tmp_path: Path) -> None:
    members = Members(MODEL, MODEL, MODEL)
    members.dies_after = {0: 2}
    assert await members.into(tmp_path / "model") == SHA256
    assert (tmp_path / "model").read_bytes() == MODEL


async def test_who_takes_over_was_asked_for_its_hash_before(tmp_path: Path) -> None:
    members = Members(MODEL, MODEL)
    members.dies_after = {0: 2}
    assert await members.into(tmp_path / "model") == SHA256
    assert (tmp_path / "model").read_bytes() == MODEL
    assert members.sent == {0: 1 + 2, 1: 1 + 4}


async def test_what_is_still_on_its_way_of_an_earlier_ask_is_passed_over(tmp_path: Path) -> None:
    members = Members(MODEL)
    fetching = asyncio.create_task(members.fetch.into([0], tmp_path / "model"))
    await asyncio.sleep(0)  # it has asked, nothing has come
    *_, rest = cut("model", MODEL, SHA256)
    await members.fetch.heard(0, *rest)
    assert await fetching == SHA256


async def test_a_member_that_is_not_there_any_more_is_not_waited_for(tmp_path: Path) -> None:
    members = Members(MODEL, MODEL)
    await members.fetch.lost(1, "gone before")
    members.dies_after = {1: 0}
    assert await members.into(tmp_path / "model") == SHA256


async def test_bytes_without_their_hash_are_not_taken(tmp_path: Path) -> None:
    members = Members(MODEL, MODEL, MODEL)
    members.lies = {0}
    assert await members.into(tmp_path / "model") == SHA256
    alone = Members(MODEL)
    alone.lies = {0}
    with pytest.raises(JobFailed, match="no peer could hand out the model"):
        await alone.into(tmp_path / "model")


async def test_a_file_above_its_limit_is_not_taken(tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match="no peer could hand out"):
        await Members(b"x" * (2**21 + 1)).into(tmp_path / "model")


async def test_a_silent_member_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_fetch, "PATIENCE_S", 0.01)
    fetch = FileFetch(SendFile(state=STATE), lambda rank, wanted: None, limit=100)
    with pytest.raises(JobFailed, match="no peer could hand out"):
        await fetch.into([0, 1], tmp_path / "state")


async def test_what_was_not_asked_for_is_not_heard(tmp_path: Path) -> None:
    members = Members(MODEL)
    part = FilePart(what="state", offset=0, total=4, sha256=STATE)
    await members.fetch.heard(0, part, memoryview(b"rest"))
    assert await members.into(tmp_path / "model") == SHA256


async def test_who_stands_still_is_asked_last(tmp_path: Path) -> None:
    members = Members(MODEL, MODEL, MODEL)
    members.still.add(0)
    assert await members.into(tmp_path / "model") == SHA256
    assert sorted(members.asked) == [1, 1, 2]


async def test_the_model_is_waited_for_at_the_only_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_fetch, "PATIENCE_S", 0.01)
    asked: list[int] = []
    still = {0}
    fetch = FileFetch(SendFile(state=STATE), lambda rank, wanted: asked.append(rank), 2**21, still)
    fetching = asyncio.create_task(fetch.into([0], tmp_path / "model"))
    done, _ = await asyncio.wait([fetching], timeout=0.05)
    assert not done
    still.clear()
    fetch.stirred(0)  # from now on its time runs
    with pytest.raises(JobFailed):
        await fetching


async def test_two_that_lie_together_are_not_believed_whatever_their_ranks(tmp_path: Path) -> None:
    members = Members(OTHER, OTHER, *[MODEL] * 8)
    assert await members.into(tmp_path / "model") == SHA256
    assert (tmp_path / "model").read_bytes() == MODEL


async def test_not_even_most_are_believed_where_the_accepted_state_is_here(tmp_path: Path) -> None:
    members = Members(OTHER, OTHER, MODEL)
    members.fetch._fits = lambda file: file.read_bytes() == MODEL
    assert await members.into(tmp_path / "model") == SHA256
    assert (tmp_path / "model").read_bytes() == MODEL
    liars = Members(OTHER, OTHER)
    liars.fetch._fits = lambda file: file.read_bytes() == MODEL
    with pytest.raises(JobFailed, match="not those of the accepted state"):
        await liars.into(tmp_path / "model")


class Stubborn:
    """Members of whom some say what they like for as long as they are asked, and the others send the file."""

    def __init__(self, says: Callable[[int], tuple[FilePart, bytes]], liars: int, honest: int) -> None:
        """`says(number)`: what each liar says as its part of that number; each waits a millisecond before it."""
        self.members = Members(*[MODEL] * (liars + honest))
        self._says = says
        self._liars = range(liars)
        self._tasks: list[asyncio.Task[None]] = []
        honestly = self.members.ask

        def ask(rank: int, wanted: SendFile) -> None:
            if rank in self._liars and wanted.whole:
                self._tasks.append(asyncio.create_task(self._lie(rank)))
            else:
                honestly(rank, wanted)

        self.members.fetch._ask = ask

    async def _lie(self, rank: int) -> None:
        for number in itertools.count():
            part, payload = self._says(number)
            await self.members.fetch.heard(rank, part, memoryview(payload))
            await asyncio.sleep(0.001)

    async def into(self, target: Path) -> bytes:
        try:
            async with asyncio.timeout(10):
                return await self.members.fetch.into(list(self.members.files), target)
        finally:
            for task in self._tasks:
                task.cancel()


def _first(number: int) -> tuple[FilePart, bytes]:
    return FilePart(what="model", offset=0, total=len(MODEL), sha256=SHA256), MODEL[:1000]


USELESS: dict[str, Callable[[int], tuple[FilePart, bytes]]] = {
    "its first part again and again": _first,
    "that it has the file": lambda _: (_first(0)[0], b""),
    "parts of another request": lambda _: (
        FilePart(what="model", offset=9, total=len(MODEL), sha256=SHA256),
        MODEL[:10],
    ),
}


@pytest.mark.parametrize("says", USELESS.values(), ids=USELESS)
async def test_who_says_something_for_ever_and_nothing_of_the_file_is_given_up(
    says: Callable[[int], tuple[FilePart, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_fetch, "PATIENCE_S", 0.2)
    assert await Stubborn(says, 1, 1).into(tmp_path / "model") == SHA256
    with pytest.raises(JobFailed, match="no part of the file came"):
        await Stubborn(says, 1, 0).into(tmp_path / "alone")


async def test_who_sends_the_file_byte_by_byte_is_given_up_where_there_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_fetch, "PATIENCE_S", 0.2)
    monkeypatch.setattr(file_fetch, "LEAST_BYTES_S", 100_000)

    def drips(number: int) -> tuple[FilePart, bytes]:
        part = FilePart(what="model", offset=number, total=len(MODEL), sha256=SHA256)
        return part, MODEL[number : number + 1]

    assert await Stubborn(drips, 1, 1).into(tmp_path / "model") == SHA256


async def test_who_gave_another_file_than_the_accepted_state_is_asked_no_more_whatever_it_claims(
    tmp_path: Path,
) -> None:
    members = Members(MODEL)
    sent = 0

    async def send(rank: int, wanted: SendFile) -> None:
        await members._send(rank, wanted)
        await members.fetch.heard(
            rank, FilePart(what="model", offset=0, total=1, sha256=b"%032d" % sent), memoryview(b"")
        )

    def ask(rank: int, wanted: SendFile) -> None:
        nonlocal sent
        sent += 1
        members.files[0] = b"%d" % sent * 1000
        members._tasks.append(asyncio.create_task(send(rank, wanted)))

    members.fetch._ask = ask
    members.fetch._fits = lambda file: sent >= 20  # so that the test ends
    with pytest.raises(JobFailed, match="not those of the accepted state"):
        await members.into(tmp_path / "model")
    assert sent == 1
