"""What `axon trust` shows, and whom it finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from axonp2p.client.storage.trust_book import KnownKey
from axonp2p.errors import Ambiguous, MalformedMessage, NotFound
from client_cli.main import cli
from client_cli.text.credits_table import whole_key
from client_cli.text.trust_table import find_one, known_data, trust_text

KNOWN = [
    KnownKey("w" * 52, 0, 7, 1000.0, "digits-1", "its steps 1 to 8 of round 2"),
    KnownKey("o" * 52, 12, 12),
    KnownKey("ox" * 26, 3, 4),
]


def test_a_line_a_key() -> None:
    lines = [" ".join(line.split()) for line in trust_text(KNOWN, {"w" * 52: "wren"}, now=1300.0).splitlines()]
    assert lines == [
        "peer id trust checks",
        f"wren {'w' * 8} convicted 7 5 min ago in digits-1: its steps 1 to 8 of round 2",
        f"- {'o' * 8} 12 passed 12",
        f"- {'ox' * 4} 3 of 10 4",
        "3 peers, 1 convicted",
    ]
    assert known_data(KNOWN[1])["trust"] == "12 passed"


def test_before_any_check() -> None:
    assert trust_text([], {}, now=0.0) == "No checks yet: the work of peers is checked while a job trains."


def test_a_key_is_found_by_its_beginning() -> None:
    assert find_one(KNOWN, "W") is KNOWN[0]
    assert find_one(KNOWN, "oo") is KNOWN[1]


@pytest.mark.parametrize(("beginning", "why"), [("o", "2 peers begin"), ("q", "no peer that was checked begins")])
def test_none_or_several_are_named(beginning: str, why: str) -> None:
    with pytest.raises(NotFound, match=why):
        find_one(KNOWN, beginning)


def test_a_key_of_credits_may_be_named_or_begun() -> None:
    names = {"w" * 52: "wren", "wx" * 26: "lynx"}
    assert whole_key("wren", names) == whole_key("WWW", names) == "w" * 52
    assert whole_key("", names) == ""
    assert whole_key("q" * 52, names) == "q" * 52
    with pytest.raises(Ambiguous, match="w matches 2 keys"):
        whole_key("w", names)


def test_a_file_that_is_no_evidence_is_told_with_where_evidence_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    error = CliRunner().invoke(cli, ["verdict", str(tmp_path / "file"), "--home", str(tmp_path)]).exception
    assert isinstance(error, MalformedMessage)
    assert error.message == f"{tmp_path / 'file'} is no evidence of a conviction"
    assert "axon trust --ask ID --into DIR" in error.fix
