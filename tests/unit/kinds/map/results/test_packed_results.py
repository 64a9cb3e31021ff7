"""Results as they travel from a host: equal when they arrive, and nothing that a host makes up becomes a result."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from axonp2p.client.storage.job_record import new_record
from axonp2p.errors import JobFailed, MalformedMessage
from axonp2p.hosting.folder_files import packed_name
from axonp2p.hosting.hosted_folder import packed_in
from axonp2p.kinds.map.fetched import fetched
from axonp2p.kinds.map.record import MapRecord
from axonp2p.kinds.map.results.packed_results import AT_ONCE, ResultsHead, ResultsRow, pack, unpack
from axonp2p.kinds.map.results.results_store import ItemResult, ResultsStore
from axonp2p.kinds.map.section import MapJob, MapSection
from axonp2p.values.packing import pack_value
from tests.fakes import NOW, key_of

LIAR = key_of("liar").peer_id
RESULTS = [
    ItemResult(0, "value", pack_value({"a": 1}), "heron", 2),
    ItemResult(1, "error", b"error", "otter"),
    ItemResult(4, "value", pack_value(b"x" * (AT_ONCE + 1)), "heron"),
    ItemResult(5, "cancelled", b"", "", 0),
]


def record(items: int = 9) -> MapRecord:
    spec = MapJob(name="squares", kind="map", map=MapSection(fn="task.py:work", items=items))
    found = new_record("squares-1", spec, "/s", NOW)
    assert isinstance(found, MapRecord)
    return found


def results_in(folder: Path) -> tuple[list[ItemResult], list[str]]:
    store = ResultsStore(folder / "results.sqlite")
    try:
        return list(store.read()), store.outvoted()
    finally:
        store.close()


def packed(*pieces: msgspec.Struct) -> bytes:
    encoded = [msgspec.msgpack.encode(piece) for piece in pieces]
    return b"".join(len(piece).to_bytes(8) + piece for piece in encoded)


def row(item: int, value: bytes = b"\x01") -> ResultsRow:
    return ResultsRow(item, "value", value, "heron", 1)


def test_results_arrive_as_they_were_and_take_the_place_of_earlier_ones(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    store = ResultsStore(there / "results.sqlite")
    store.keep(RESULTS, [])
    store.distrust(LIAR, "liar", again=True)
    store.close()
    pack(there)
    pack(there)
    (file,) = packed_in(there)
    earlier = ResultsStore(here / "results.sqlite")
    earlier.keep([ItemResult(7, "value", b"earlier", "otter")], [])
    earlier.close()
    unpack(record(), file.rename(here / file.name))
    assert results_in(here) == (RESULTS, [LIAR])
    assert sorted(path.name for path in here.iterdir()) == sorted(["results.sqlite", file.name])


def test_a_job_without_results_has_a_file_without_rows(tmp_path: Path) -> None:
    pack(tmp_path)
    (file,) = packed_in(tmp_path)
    assert not (tmp_path / "results.sqlite").exists()
    unpack(record(), file)
    assert results_in(tmp_path) == ([], [])


HEAD = ResultsHead([])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "cannot be read"),
        (b"SQLite format 3\0" + bytes(5000), "a piece of 600"),
        (packed(HEAD, row(0))[:-1], "end too soon"),
        (packed(HEAD, row(0), row(0)), "item 0 of 9 after item 0"),
        (packed(HEAD, row(5), row(4)), "item 4 of 9 after item 5"),
        (packed(HEAD, row(9)), "item 9 of 9"),
        (packed(HEAD, row(0, bytes(70_000_000))), "at most"),
        (packed(HEAD) + (2**63).to_bytes(8), "a piece of 9223372036854775808 bytes"),
        (packed(HEAD, ResultsRow(0, "good", b"", "heron", 1)), "cannot be read"),  # type: ignore[arg-type]
        (packed(HEAD, ResultsRow(-1, "value", b"", "heron", 1)), "cannot be read"),
        (packed(HEAD, ResultsRow(0, "value", b"", "h" * 300, 1)), "cannot be read"),
        (packed(ResultsHead(["nobody"])), "cannot be read"),
        (packed(HEAD, HEAD), "cannot be read"),
    ],
)  # fmt: skip
def test_what_is_none_changes_nothing(tmp_path: Path, content: bytes, why: str) -> None:
    store = ResultsStore(tmp_path / "results.sqlite")
    store.keep(RESULTS, [])
    store.close()
    file = tmp_path / packed_name("0" * 64)
    file.write_bytes(content)
    with pytest.raises(MalformedMessage, match=why):
        unpack(record(), file)
    assert results_in(tmp_path)[0] == RESULTS
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["results.sqlite", file.name])


def test_merged_results_arrive_as_the_one_value(tmp_path: Path) -> None:
    spec = MapJob(name="sums", kind="map", map=MapSection(fn="t.py:f", reduce="t.py:g", items=4, fold=2))
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    store = ResultsStore(there / "results.sqlite")
    store.keep([ItemResult(call, "value", pack_value(call), "heron") for call in range(3)], [])
    store.close()
    pack(there)
    (file,) = packed_in(there)
    unpack(new_record("sums-1", spec, "/s", NOW), file.rename(here / file.name))
    assert fetched(here / "results.sqlite") == 2


def test_a_host_that_merged_nothing_has_no_result(tmp_path: Path) -> None:
    spec = MapJob(name="sums", kind="map", map=MapSection(fn="t.py:f", reduce="t.py:g", items=4, fold=2))
    file = tmp_path / packed_name("0" * 64)
    file.write_bytes(packed(ResultsHead([]), row(0), row(1)))
    unpack(new_record("sums-1", spec, "/s", NOW), file)
    with pytest.raises(JobFailed, match="no merged result"):
        fetched(tmp_path / "results.sqlite")
