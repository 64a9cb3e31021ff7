"""What every program's tables and counts look like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.plain_text import bytes_text, columns, plural


def test_columns_line_up_and_leave_no_blanks_at_the_end() -> None:
    table = columns(["name", "n"], [["otter", "1"], ["ox", "100"]], right=(1,))
    assert table == "name     n\notter    1\nox     100"


def test_plural() -> None:
    assert [plural(count, "peer") for count in (0, 1, 1234)] == ["0 peers", "1 peer", "1,234 peers"]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (3_100_000, "3.1 MB"), (999_950, "1.0 MB"), (123_400_000, "123 MB")],
)
def test_bytes(count: int, text: str) -> None:
    assert bytes_text(count) == text


@given(st.integers(min_value=0, max_value=10**17))
def test_a_scaled_number_never_shows_four_digits_before_the_unit(count: int) -> None:
    assert float(bytes_text(count).split()[0]) < 1000
