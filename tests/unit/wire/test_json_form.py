"""Reading JSON: a value of the type, or one error, whatever the bytes are."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.wire.json_form import decode_json


class Page(msgspec.Struct):
    time: float


@pytest.mark.parametrize(
    "data",
    [b'{"time":1,"x":' + b"[" * 100_000, b'{"time":' + b"9" * 5000 + b"}", b'{"time":1e999}', b"\xff", b"", b"nul"],
    ids=["deep", "digits", "beyond a float", "no text", "nothing", "half a word"],
)
def test_what_is_none_is_one_error(data: bytes) -> None:
    for kind in (Page, dict[str, Any]):
        with pytest.raises(msgspec.DecodeError):
            decode_json(data, kind)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_that_error(data: bytes) -> None:
    with suppress(msgspec.DecodeError):
        decode_json(data, dict[str, Any])
