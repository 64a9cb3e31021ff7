"""TensorBoard's files, read back by a reader that knows nothing of the writer."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.client.events.events import RoundFinished
from axonp2p.errors import SettingsError
from client_cli.report.tensorboard import TensorBoardFiles, values_of
from client_cli.report.tensorboard_records import crc32c, file_of, masked, scalars
from tests.laboratory.paper_job import NOON, STATES

Fields = list[tuple[int, int, bytes | int]]


def records(data: bytes) -> list[bytes]:
    """The events of a file, their checksums checked."""
    found, at = [], 0
    while at < len(data):
        (length,), (check,) = struct.unpack_from("<Q", data, at), struct.unpack_from("<I", data, at + 8)
        assert check == masked(data[at : at + 8])
        event = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length) == (masked(event),)
        found.append(event)
        at += 16 + length
    return found


def fields(message: bytes) -> Fields:
    """Protobuf, as far as it is used here: (number, type, value)."""

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return value, at

    found: Fields = []
    at = 0
    while at < len(message):
        key, at = varint(at)
        if key & 7 == 0:
            value, at = varint(at)
            found.append((key >> 3, 0, value))
            continue
        length = {1: 8, 5: 4}.get(key & 7)
        if length is None:
            length, at = varint(at)
        found.append((key >> 3, key & 7, message[at : at + length]))
        at += length
    return found


def scalars_in(event: bytes) -> tuple[float, int, dict[str, float]]:
    """When, at which step, and what."""
    told = {number: value for number, _, value in fields(event)}
    at, step, summary = told[1], told[2], told[5]
    assert isinstance(at, bytes)
    assert isinstance(summary, bytes)
    assert isinstance(step, int)
    values = {}
    for _, _, value in fields(summary):
        assert isinstance(value, bytes)
        one = {number: inside for number, _, inside in fields(value)}
        tag, packed = one[1], one[2]
        assert isinstance(tag, bytes)
        assert isinstance(packed, bytes)
        values[tag.decode()] = struct.unpack("<f", packed)[0]
    return struct.unpack("<d", at)[0], step, values


def test_the_checksum_is_the_one_of_the_standard() -> None:
    # RFC 3720, B.4, and the usual check value.
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43


@given(
    at=st.floats(0, 2e9),
    step=st.integers(0, 2**62),
    values=st.dictionaries(st.text(max_size=80), st.floats(width=32, allow_nan=False), max_size=20),
)
def test_what_is_written_is_read(at: float, step: int, values: dict[str, float]) -> None:
    first, second = records(file_of(at, [scalars(at, step, values)]))
    assert (3, 2, b"brain.Event:2") in fields(first)
    if values:
        assert scalars_in(second) == (at, step, values)


def test_a_number_beyond_32_bits_is_infinite() -> None:
    _, event = records(file_of(0, [scalars(0, 1, {"loss": 1e300, "gain": -1e300})]))
    assert scalars_in(event)[2] == {"loss": float("inf"), "gain": float("-inf")}


def test_a_job_is_a_folder_and_each_of_its_lives_a_file(tmp_path: Path) -> None:
    job = STATES["resumed"](tmp_path / "home")
    happened = job.folder.read_events()
    run = TensorBoardFiles.write(tmp_path / "runs", "digits-7f3a", happened)
    assert run == tmp_path / "runs" / "digits-7f3a"
    first, second = sorted(run.iterdir())
    assert first.name == f"events.out.tfevents.{int(NOON)}.axon"
    read = [scalars_in(event) for file in (first, second) for event in records(file.read_bytes())[1:]]
    rounds = [event for event in happened if isinstance(event, RoundFinished)]
    assert [step for _, step, _ in read] == [event.round + 1 for event in rounds]
    for (at, _, values), event in zip(read, rounds, strict=True):
        assert at == event.at
        assert values == pytest.approx(values_of(event), rel=1e-6)
    assert "held_out/accuracy" in read[0][2]
    assert "samples_per_second/otter" in read[0][2]


def test_a_folder_that_takes_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(SettingsError, match="cannot write to"):
        TensorBoardFiles.write(tmp_path / "runs", "digits-7f3a", STATES["left"](tmp_path / "home").folder.read_events())
