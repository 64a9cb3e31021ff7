"""A bundle's manifest: its files with the hashes of their pieces, and which piece lies where. Pure."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated

import msgspec

from axonp2p.blobs.messages import MOST_PIECES
from axonp2p.blobs.pieces import HASH_BYTES, PIECE_BYTES, PieceBook, piece_count
from axonp2p.errors import MalformedMessage, MessageTooLarge
from axonp2p.wire.codec import Message, decode_as, encode
from axonp2p.wire.frame import PAYLOAD_LIMIT

MOST_FILES = 256
ALONE = "content"
"""The name of the file of a further blob in its manifest: so its bytes alone give the blob its name."""


class BlobFile(Message, frozen=True):
    """One file of a bundle."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    """Relative, with forward slashes."""
    size: Annotated[int, msgspec.Meta(ge=0, le=2**40)]
    """Bytes."""
    blake3: Annotated[bytes, msgspec.Meta(max_length=MOST_PIECES * HASH_BYTES)]
    """BLAKE3 of every piece of 256 KiB (the last may be shorter), one after the other."""


class Manifest(Message, frozen=True):
    """All files of a bundle. Its pieces are numbered through, in this order; an empty file has none."""

    files: Annotated[list[BlobFile], msgspec.Meta(min_length=1, max_length=MOST_FILES)]
    """In the order in which their pieces are numbered."""


@dataclass(frozen=True)
class PiecePlace:
    """Where a piece lies."""

    file: int
    offset: int
    length: int


class Blob:
    """A manifest with its name, as whoever sends or fetches its pieces asks it."""

    def __init__(self, manifest: Manifest) -> None:
        """Raises `MalformedMessage` for a file whose hashes are too many or few, `MessageTooLarge` over the limit."""
        for file in manifest.files:
            if len(file.blake3) != piece_count(file.size) * HASH_BYTES:
                raise MalformedMessage(f"{file.path!r} does not have as many hashes as pieces")
        self.files = list(manifest.files)
        self._books = [PieceBook(file.blake3) for file in manifest.files]
        self._ends = list(accumulate(piece_count(file.size) for file in manifest.files))
        if self.count > MOST_PIECES:
            raise MessageTooLarge(f"a bundle of {self.count} pieces; at most {MOST_PIECES}")
        self.encoded = encode(manifest)
        self.name = hashlib.sha256(self.encoded).digest()

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return self._ends[-1]

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)

    def place(self, number: int) -> PiecePlace:
        """Where that piece lies."""
        file = bisect_right(self._ends, number)
        offset = (number - self._first(file)) * PIECE_BYTES
        return PiecePlace(file, offset, min(PIECE_BYTES, self.files[file].size - offset))

    def fits(self, number: int, piece: bytes | memoryview) -> bool:
        """Whether these bytes are that piece; False for a number that there is none of."""
        if not 0 <= number < self.count:
            return False
        place = self.place(number)
        within = number - self._first(place.file)
        return len(piece) == place.length and self._books[place.file].fits(within, piece)

    def _first(self, file: int) -> int:
        return self._ends[file - 1] if file else 0


def read_manifest(payload: bytes | memoryview, name: bytes) -> Blob:
    """The blob of that name. Raises `MalformedMessage` or `MessageTooLarge`."""
    if hashlib.sha256(payload).digest() != name:
        raise MalformedMessage("a manifest that does not have the hash by which it is named")
    blob = Blob(decode_as(payload, Manifest, PAYLOAD_LIMIT))
    if blob.name != name:
        raise MalformedMessage("a manifest that is not in its one form")
    return blob


_ONE = ord("1")
_SET_BITS = [tuple(bit for bit in range(8) if byte & 0x80 >> bit) for byte in range(256)]
"""By byte: which of its bits are set, the highest is 0."""


def as_bits(numbers: Iterable[int], count: int) -> bytes:
    """A bit for each of `count` pieces."""
    size = -(-count // 8)
    digits = bytearray(b"0") * (8 * size)
    for number in numbers:
        digits[number] = _ONE
    return int(digits or b"0", 2).to_bytes(size, "big")


def from_bits(bits: bytes, count: int) -> set[int]:
    """The numbers whose bits are set. Raises `MalformedMessage` when there are not as many bits as pieces."""
    if len(bits) != -(-count // 8):
        raise MalformedMessage(f"{len(bits)} bytes of bits for {count} pieces")
    found = {8 * at + bit for at, byte in enumerate(bits) for bit in _SET_BITS[byte]}
    if found and max(found) >= count:
        raise MalformedMessage("a piece that there is none of")
    return found
