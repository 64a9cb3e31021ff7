"""Results on the disk: files first, then a line, and only whole ones count."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from axonp2p.errors import PeerMisbehaved, SettingsError
from axonp2p.jobs.output_messages import OutputFile, OutputPart, OutputsSent
from axonp2p.kinds.run.results import ArrivingOutputs, CopyResult, ResultsFile, clear_away

REQUEST = 5


def arriving(out: Path, *patterns: str, index: int = 3) -> ArrivingOutputs:
    return ArrivingOutputs(out, index, REQUEST, patterns or ("*",))


def send(outputs: ArrivingOutputs, number: int, path: str, *parts: bytes, **wrong: Any) -> None:
    offset = 0
    for part in parts:
        outputs.take(OutputPart(request=REQUEST, number=number, offset=offset), part)
        offset += len(part)
    content = b"".join(parts)
    said = {"size": len(content), "sha256": hashlib.sha256(content).digest()} | wrong
    outputs.take(OutputFile(request=REQUEST, number=number, path=path, **said))


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_are_put_in_their_place_when_all_are_here(tmp_path: Path) -> None:
    out = tmp_path / "out"
    outputs = arriving(out)
    send(outputs, 0, "a.json", b"one", b"two")
    send(outputs, 1, "deep/er/b.bin", b"three")
    send(outputs, 2, "empty")
    assert not (out / "3").exists()
    outputs.take(OutputsSent(request=REQUEST, files=3, left_out=1))
    assert (outputs.complete, outputs.files, outputs.bytes, outputs.left_out) == (True, 3, 11, 1)
    outputs.put()
    assert files_in(out) == {"3/a.json": b"onetwo", "3/deep/er/b.bin": b"three", "3/empty": b""}
    assert [path.name for path in out.iterdir()] == ["3"]


def test_a_copy_without_files_has_an_empty_folder(tmp_path: Path) -> None:
    outputs = arriving(tmp_path / "out")
    outputs.take(OutputsSent(request=REQUEST, files=0))
    outputs.put()
    assert list((tmp_path / "out").iterdir()) == [tmp_path / "out" / "3"]


def test_what_a_crash_left_never_counts(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "3" / "deep").mkdir(parents=True)
    (out / "3" / "deep" / "old").write_text("of a result that has no line")
    send(arriving(out), 0, "half", b"x")  # and then it was killed
    clear_away(out)
    assert [path.name for path in out.iterdir()] == ["3"]
    outputs = arriving(out)
    send(outputs, 0, "new", b"1")
    outputs.take(OutputsSent(request=REQUEST, files=1))
    outputs.put()
    assert files_in(out) == {"3/new": b"1"}


def test_what_an_earlier_request_had_on_its_way_is_passed_over(tmp_path: Path) -> None:
    outputs = arriving(tmp_path)
    outputs.take(OutputPart(request=4, number=9, offset=77), b"old")
    outputs.take(OutputFile(request=4, number=9, path="../x", size=3, sha256=bytes(32)))
    outputs.take(OutputsSent(request=4, files=9))
    assert not outputs.complete
    outputs.drop()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_its_peer_could_not_read_to_the_end_is_left_out(tmp_path: Path) -> None:
    outputs = arriving(tmp_path)
    outputs.take(OutputPart(request=REQUEST, number=0, offset=0), b"half")
    send(outputs, 1, "whole", b"1")
    outputs.take(OutputPart(request=REQUEST, number=2, offset=0), b"half")
    outputs.take(OutputsSent(request=REQUEST, files=1, left_out=2))
    outputs.put()
    assert files_in(tmp_path) == {"3/whole": b"1"}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../escape.json", "must not have empty parts"),
        ("/etc/cron.json", "relative"),
        ("a//b.json", "empty parts"),
        (".json/../x.json", "must not have"),
        ("x\u202e.json", "invisible"),
        ("first.json", "twice"),
        ("first.json/more.json", "file and a folder"),
        ("other.txt", "nobody asked for"),
    ],
)
def test_names_are_a_strangers_words(tmp_path: Path, path: str, reason: str) -> None:
    outputs = arriving(tmp_path / "out", "*.json")
    send(outputs, 0, "first.json", b"1")
    with pytest.raises(PeerMisbehaved, match=reason):
        send(outputs, 1, path, b"2")
    outputs.drop()
    assert files_in(tmp_path) == {}


@pytest.mark.parametrize("wrong", [{"size": 4}, {"sha256": bytes(32)}])
def test_another_hash_or_size_is_not_taken(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(PeerMisbehaved, match="hash or size"):
        send(arriving(tmp_path), 0, "a", b"abc", **wrong)


def test_parts_out_of_order_or_empty_are_not_taken(tmp_path: Path) -> None:
    outputs = arriving(tmp_path)
    for number, offset, payload in ((0, 1, b"x"), (0, 0, b"")):
        with pytest.raises(PeerMisbehaved, match="does not fit"):
            outputs.take(OutputPart(request=REQUEST, number=number, offset=offset), payload)
    send(outputs, 0, "a", b"x")
    with pytest.raises(PeerMisbehaved, match="out of order"):
        outputs.take(OutputPart(request=REQUEST, number=0, offset=1), b"x")
    with pytest.raises(PeerMisbehaved, match="says that it sent 2 files, and 1 came"):
        outputs.take(OutputsSent(request=REQUEST, files=2))


def test_after_the_end_nothing_more_comes(tmp_path: Path) -> None:
    outputs = arriving(tmp_path)
    outputs.take(OutputsSent(request=REQUEST, files=0))
    with pytest.raises(PeerMisbehaved):
        outputs.take(OutputPart(request=REQUEST, number=0, offset=0), b"x")
    with pytest.raises(PeerMisbehaved):
        send(outputs, 0, "empty")


def test_a_disk_that_takes_no_more_is_named_with_what_mends_it(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file in the way")
    with pytest.raises(SettingsError, match="cannot write"):
        arriving(tmp_path / "out")


# --- results.csv ---

ONE = CopyResult(0, "otter", 0, 1.25, 11)
TWO = CopyResult(2, "brave lynx, of home", -9, 0.0, 0)


def test_lines_are_read_back(tmp_path: Path) -> None:
    file = ResultsFile(tmp_path / "results.csv", copies=3)
    assert file.read() == {}
    file.add(ONE)
    file.add(TWO)
    assert file.read() == {0: ONE, 2: TWO}
    assert file.mend() is None
    text = (tmp_path / "results.csv").read_text()
    assert text.splitlines() == [
        "index,peer,code,seconds,bytes",
        "0,otter,0,1.25,11",
        '2,"brave lynx, of home",-9,0.0,0',
    ]


def test_a_line_that_a_crash_cut_off_never_counted(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    file = ResultsFile(path, copies=3)
    file.add(ONE)
    whole = path.read_bytes()
    file.add(TWO)
    for length in range(len(whole), len(path.read_bytes())):
        cut = tmp_path / f"{length}.csv"
        cut.write_bytes(path.read_bytes()[:length])
        short = ResultsFile(cut, copies=3)
        assert short.read() == {0: ONE}
        assert short.mend() is None
        short.add(TWO)
        assert short.read() == {0: ONE, 2: TWO}
        assert short.mend() is None


@pytest.mark.parametrize(
    "damage",
    [b"0,otter,0,1.25,99\n", b"7,otter,0,1,1\n", b"\xff\xfe\n", b"1,otter,x,1,1\n", b"1,otter,0,nan,1\n", b"\n"],
)
def test_a_damaged_file_is_put_aside_and_its_good_lines_stay(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "results.csv"
    file = ResultsFile(path, copies=3)
    file.add(ONE)
    with path.open("ab") as stream:
        stream.write(damage)
    file.add(TWO)
    assert file.read() == {0: ONE, 2: TWO}
    aside = file.mend()
    assert aside is not None
    assert aside.name == "results.csv.damaged"
    assert file.read() == {0: ONE, 2: TWO}
    assert file.mend() is None


def test_a_file_that_is_all_rubbish_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_bytes(b"\0" * 100 + b"\n")
    file = ResultsFile(tmp_path / "results.csv", copies=3)
    assert file.mend() is not None
    file.add(ONE)
    assert file.read() == {0: ONE}
