"""What a job printed, from its folder."""

from __future__ import annotations

from pathlib import Path

from axonp2p.kinds.run.events import CopyBegun, CopyRetried, OutputsKept
from client_cli.watching.logs import LogTails, peers_of

TOLD = [
    CopyBegun(index=0, attempt=0, peer="otter"),
    CopyBegun(index=3, attempt=0, peer="wren"),
    OutputsKept(index=0, peer="otter", files=0, bytes=0, done=1, copies=4),
    CopyRetried(index=3, attempt=1, peer="otter"),
    CopyRetried(index=3, attempt=2, peer="wren"),
]


def test_an_index_is_looked_for_where_it_ran() -> None:
    assert peers_of(TOLD, 3) == ["wren", "otter"]
    assert peers_of(TOLD, 7) == []


def test_each_file_is_printed_under_its_name(tmp_path: Path) -> None:
    (tmp_path / "otter.log").write_text("one\ntwo\n")
    (tmp_path / "wren.log").write_text("\x1b[2Jthree")
    said: list[str] = []
    tails = LogTails(tmp_path, said.append)
    tails.look(None, all_of_it=True)
    assert said == ["==> otter <==", "one\ntwo", "==> wren <==", "\N{REPLACEMENT CHARACTER}[2Jthree"]
    said.clear()
    LogTails(tmp_path, said.append).look(["wren"], all_of_it=True)
    assert said[0] == "==> wren <=="
    assert tails.found


def test_a_file_is_followed_line_by_line(tmp_path: Path) -> None:
    said: list[str] = []
    tails = LogTails(tmp_path, said.append)
    tails.look(None, all_of_it=False)
    assert not tails.found
    log = tmp_path / "otter.log"
    log.write_text("one\ntw")
    tails.look(None, all_of_it=False)
    assert said == ["==> otter <==", "one"]
    log.write_text("one\ntwo\nthree")
    tails.look(None, all_of_it=False)
    assert said[2:] == ["two"]
    tails.look(None, all_of_it=True)
    assert said[3:] == ["three"]
