"""However a file grows, shrinks or is written anew between two looks, the copy becomes what it is."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.client.hosted import hosted_copy
from axonp2p.client.hosted.hosted_copy import HostedCopy
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import Refused
from axonp2p.hosting import hosted_folder
from axonp2p.hosting.folder_files import EVENTS, METRICS
from axonp2p.hosting.host import Host
from axonp2p.hosting.hosted_folder import HostedFolder
from axonp2p.hosting.messages import FolderState
from axonp2p.transport.address import PinnedAddress
from tests.fakes import ManualClock, key_of

JOB = "line-7f3a"
PART = 7
"""Bytes of a part here, so that few bytes are many parts."""


class ShortLine:
    """A line to a host's folder that leaves the network out."""

    host = Host(PinnedAddress("host", 1, b"f" * 32), key_of("host").peer_id)

    def __init__(self, folder: HostedFolder) -> None:
        self._folder = folder

    async def folder(self, job: str, record: bytes) -> tuple[FolderState, bytes]:
        return FolderState(job=job, at_work=True, trouble="", files=self._folder.listing()), b""

    async def part(self, job: str, name: str, offset: int, before: bytes = b"") -> tuple[int, bytes]:
        begins, content = self._folder.part(name, offset, before)
        return begins, content[:PART]


CHANGES = st.lists(
    st.tuples(
        st.sampled_from([EVENTS, METRICS, "logs/otter.log"]),
        st.sampled_from(["add", "anew", "look"]),
        st.binary(max_size=40),
    ),
    max_size=12,
)


@pytest.mark.slow
@given(CHANGES)
@settings(deadline=None, max_examples=60)
def test_the_copy_becomes_what_it_is(changes: list[tuple[str, str, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as base:
        there = HostedFolder(Path(base) / "host", key_of("ada").peer_id, JOB)
        (there.job / "logs").mkdir(parents=True)
        here = JobFolder(Path(base) / "laptop" / "jobs" / JOB)
        here.path.mkdir(parents=True)
        copy = HostedCopy(here, ShortLine(there), ManualClock(), result=False)  # type: ignore[arg-type]

        async def live() -> None:
            for name, change, content in changes:
                if change == "look":
                    await copy.look()
                else:
                    with (there.job / name).open("ab" if change == "add" else "wb") as file:
                        file.write(content)
            await copy.look()

        asyncio.run(live())
        for name in (EVENTS, METRICS, "logs/otter.log"):
            if (there.job / name).exists():
                content = (there.job / name).read_bytes()
                assert _content(here.path / name) == content


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def test_a_file_that_outgrew_what_travels_is_cut_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted_folder, "GROWING_LIMIT", 10)
    monkeypatch.setattr(hosted_copy, "GROWING_LIMIT", 10)
    there = HostedFolder(tmp_path / "host", key_of("ada").peer_id, JOB)
    there.job.mkdir(parents=True)
    (there.job / EVENTS).write_bytes(b"0123456789ABC")
    here = JobFolder(tmp_path / JOB)
    here.path.mkdir()
    asyncio.run(HostedCopy(here, ShortLine(there), ManualClock(), result=False).look())  # type: ignore[arg-type]
    assert here.events.read_bytes() == b"0123456789"


def test_what_stands_before_a_part_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    there = HostedFolder(tmp_path / "host", key_of("ada").peer_id, JOB)
    there.job.mkdir(parents=True)
    content = b"0123456789abcdef" * 2**19
    (there.job / EVENTS).write_bytes(content + b"new")
    before = hashlib.sha256(content).digest()
    tracemalloc.start()
    try:
        assert there.part(EVENTS, len(content), before) == (len(content), b"new")
        assert tracemalloc.get_traced_memory()[1] < 3 * 2**20
    finally:
        tracemalloc.stop()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    there = HostedFolder(tmp_path / "host", key_of("ada").peer_id, JOB)
    there.job.mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (there.job / EVENTS).symlink_to(tmp_path / "secret")
    with pytest.raises(Refused):
        there.part(EVENTS, 0, b"")


@pytest.mark.parametrize("job", ["..", "a/b", ".hidden", "line\n", "", "a" * 65])
def test_an_id_that_names_no_folder(tmp_path: Path, job: str) -> None:
    with pytest.raises(Refused):
        HostedFolder(tmp_path, key_of("ada").peer_id, job)
