"""TensorBoard's event files as bytes. Pure.

A file is a row of records: length, its checksum, an `Event` in protobuf, its checksum. Only scalars and the file's
version are written. Why not by a library: docs/decisions/0022-the-jobs-page.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

VERSION = "brain.Event:2"
_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8


def _table() -> tuple[int, ...]:
    found = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return tuple(found)


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """Castagnoli's CRC, as in iSCSI."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    """The checksum as these files hold it: turned and moved, so that a checksum of checksums is no trap."""
    value = crc32c(data)
    return ((value >> 15 | value << 17) + _MASK_DELTA) & 0xFFFFFFFF


def record(event: bytes) -> bytes:
    """One event on its way to the file."""
    length = struct.pack("<Q", len(event))
    return length + struct.pack("<I", masked(length)) + event + struct.pack("<I", masked(event))


def first_event(at: float) -> bytes:
    """What every file begins with. Times are Unix seconds."""
    return _double(1, at) + _bytes(3, VERSION.encode())


def scalars(at: float, step: int, values: Mapping[str, float]) -> bytes:
    """An event with a value for each tag."""
    summary = b"".join(_bytes(1, _bytes(1, tag.encode()) + _float(2, value)) for tag, value in values.items())
    return _double(1, at) + _whole(2, step) + _bytes(5, summary)


def file_of(at: float, events: Iterable[bytes]) -> bytes:
    """A whole file."""
    return b"".join(record(event) for event in (first_event(at), *events))


# --- protobuf: the number of a field, how it is written, its value ------------------------------------


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _float(field: int, value: float) -> bytes:
    try:
        packed = struct.pack("<f", value)
    except OverflowError:  # beyond what 32 bits hold
        packed = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return _varint(field << 3 | 5) + packed


def _whole(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
