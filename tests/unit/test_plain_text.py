"""What every program's tables and counts look like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.plain_text import amount_of, bytes_text, columns, mbits_of, mebibytes_of, mebibytes_text, plural


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


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0 MiB"), (512, "512 MiB"), (1024, "1 GiB"), (24_076, "23.5 GiB"), (6428, "6.27 GiB"), (2**20, "1 TiB")],
)
def test_memory_and_disk(amount: int, text: str) -> None:
    assert mebibytes_text(amount) == text


@given(st.integers(min_value=0, max_value=2**24))
def test_what_is_shown_of_memory_can_be_typed_in_and_had(amount: int) -> None:
    assert amount * 0.98 - 1 <= (mebibytes_of(mebibytes_text(amount)) or 0) <= amount


def test_gb_are_powers_of_1000_and_gib_powers_of_1024() -> None:
    for text in ("4GB", "4 GB", "4 gb", "4000 MB", "0.004TB"):
        assert mebibytes_of(text) == round(4e9 / 2**20)
    for text in ("4GiB", "4 GiB", "4G", "4096", "4096 MiB", "4096m"):
        assert mebibytes_of(text) == 4096


@pytest.mark.parametrize(
    ("text", "rate"), [("20Mbit/s", 20), ("20 mbit", 20), ("20 Mbps", 20), ("1 Gbit/s", 1000), ("500 kbit/s", 0.5)]
)
def test_rates_as_people_write_them(text: str, rate: float) -> None:
    assert mbits_of(text) == rate


@pytest.mark.parametrize("text", ["", "Mbit", "20 MB/s", "20 Mbps/s", "20/s", "-1 Mbit", "nan"])
def test_no_rates(text: str) -> None:
    assert mbits_of(text) is None


def test_a_number_alone_is_one_of_the_unit_in_which_it_is_kept() -> None:
    assert [amount_of("90", unit) for unit in ("MiB", "Mbit/s", "ms", "s", "min", "d")] == [90] * 6
    assert [amount_of("1h30m", unit) for unit in ("ms", "s", "min", "d")] == [5_400_000, 5400, 90, 0.0625]
    assert amount_of("3 apples", "min") is None
