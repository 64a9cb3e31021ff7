"""What every program's tables and counts look like."""

from __future__ import annotations

from axonp2p.plain_text import columns, plural


def test_columns_line_up_and_leave_no_blanks_at_the_end() -> None:
    table = columns(["name", "n"], [["otter", "1"], ["ox", "100"]], right=(1,))
    assert table == "name     n\notter    1\nox     100"


def test_plural() -> None:
    assert [plural(count, "peer") for count in (0, 1, 1234)] == ["0 peers", "1 peer", "1,234 peers"]
