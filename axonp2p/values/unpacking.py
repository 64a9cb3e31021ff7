"""Bytes of a stranger to a value: each length is compared with what is there before anything is made of it. Pure."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable
from typing import Any

from axonp2p.errors import MalformedMessage, MessageTooLarge
from axonp2p.plain_text import bytes_text
from axonp2p.values.arrays import array_of
from axonp2p.values.bounds import CONTAINER_ITEMS, LONGEST_DTYPE, LONGEST_INT, MOST_AXES, ItemBudget, ResultBounds
from axonp2p.values.forms import DATE_KINDS, NAN, Form, mistake_of_keys

_UINTS = {0xCC: (">B", 2**7), 0xCD: (">H", 2**8), 0xCE: (">I", 2**16), 0xCF: (">Q", 2**32)}
"""How each is read, and the smallest number that is written so."""
_INTS = {0xD0: (">b", -(2**5)), 0xD1: (">h", -(2**7)), 0xD2: (">i", -(2**15)), 0xD3: (">q", -(2**31))}
"""How each is read, and the number below which it is written so."""
_LENGTHS = {
    0xC4: (">B", 0), 0xC5: (">H", 2**8), 0xC6: (">I", 2**16),  # bytes
    0xC7: (">B", 0), 0xC8: (">H", 2**8), 0xC9: (">I", 2**16),  # extensions
    0xD9: (">B", 32), 0xDA: (">H", 2**8), 0xDB: (">I", 2**16),  # text
    0xDC: (">H", 16), 0xDD: (">I", 2**16), 0xDE: (">H", 16), 0xDF: (">I", 2**16),  # lists, dicts
}  # fmt: skip
"""How each length is read, and the shortest that is written so."""
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_FLOAT = 0xCB
_DATES = {form: kind for kind, form in DATE_KINDS.items()}


def unpack_value(data: bytes | bytearray | memoryview, bounds: ResultBounds | None = None) -> Any:
    """The value of these bytes, which are a stranger's.

    Raises `MessageTooLarge` or `MalformedMessage`; no other error, whatever the bytes are.
    """
    bounds = bounds or ResultBounds()
    if len(data) > bounds.most_bytes:
        raise MessageTooLarge(f"a result of {bytes_text(len(data))}; at most {bytes_text(bounds.most_bytes)}")
    reader = _Reader(memoryview(data), bounds)
    value = reader.value(0)
    if reader.at != len(data):
        raise MalformedMessage(f"{len(data) - reader.at:,} bytes behind a result")
    return value


class _Reader:
    def __init__(self, data: memoryview, bounds: ResultBounds) -> None:
        self._data = data
        self.at = 0
        self._end = len(data)
        """Of what is read now: of the whole, or of the body of an extension."""
        self._bounds = bounds
        self._budget = ItemBudget(bounds.most_items)
        self._bodies: dict[int, Callable[[int], Any]] = {
            Form.TUPLE: lambda depth: tuple(self._list_of("a tuple", depth)),
            Form.SET: lambda depth: set(self._elements(depth)),
            Form.FROZENSET: lambda depth: frozenset(self._elements(depth)),
            Form.LONG_INT: lambda depth: self._long_int(),
            Form.COMPLEX: lambda depth: complex(self._float(), self._float()),
            Form.DATE: lambda depth: self._date(Form.DATE),
            Form.TIME: lambda depth: self._date(Form.TIME),
            Form.DATETIME: lambda depth: self._date(Form.DATETIME),
            Form.TIMEDELTA: lambda depth: self._timedelta(),
            Form.SCALAR: lambda depth: self._scalar(),
            Form.ARRAY: self._array,
            Form.MASKED: self._masked,
        }

    def value(self, depth: int) -> Any:
        """The value that begins here."""
        self._spend(1)
        tag = self._take(1)[0]
        if tag < 0x80:
            return tag
        if tag >= 0xE0:
            return tag - 0x100
        if tag == _FLOAT:
            return self._float()
        if tag < 0x90:
            return self._dict(tag & 0x0F, depth)
        if tag < 0xA0:
            return self._list(tag & 0x0F, depth)
        if tag < 0xC0:
            return self._text(tag & 0x1F)
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag in _UINTS:
            form, least = _UINTS[tag]
            return self._checked(form, lambda number: number >= least)
        if tag in _INTS:
            form, above = _INTS[tag]
            return self._checked(form, lambda number: number < above)
        if tag in _FIXED_EXTENSIONS:
            return self._extension(_FIXED_EXTENSIONS[tag], depth)
        if tag not in _LENGTHS:
            raise MalformedMessage(f"a result has a value of unknown type {tag:#x}")
        return self._long(tag, self._length(tag), depth)

    def _long(self, tag: int, length: int, depth: int) -> Any:
        if tag <= 0xC6:
            return bytes(self._take(length))
        if tag <= 0xC9:
            if length in _FIXED_EXTENSIONS.values():
                raise MalformedMessage("a length in a result is written longer than it has to be")
            return self._extension(length, depth)
        if tag <= 0xDB:
            return self._text(length)
        return self._list(length, depth) if tag <= 0xDD else self._dict(length, depth)

    # --- bytes and numbers ---

    def _take(self, length: int) -> memoryview:
        begin, self.at = self.at, self.at + length
        if self.at > self._end:
            raise MalformedMessage(f"a result says that {length:,} bytes follow, and {self._end - begin:,} do")
        return self._data[begin : self.at]

    def _spend(self, items: int) -> None:
        if not self._budget.spend(items):
            raise MessageTooLarge(f"a result of more than {self._bounds.most_items:,} values")

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _checked(self, form: str, is_shortest: Callable[[int], bool]) -> int:
        number: int = self._number(form)
        if not is_shortest(number):
            raise MalformedMessage("a number in a result is written longer than it has to be")
        return number

    def _length(self, tag: int) -> int:
        form, least = _LENGTHS[tag]
        length: int = self._number(form)
        if length < least:
            raise MalformedMessage("a length in a result is written longer than it has to be")
        return length

    def _float(self) -> float:
        bits = self._take(8)
        number: float = struct.unpack(">d", bits)[0]
        if number != number and bits != NAN:
            raise MalformedMessage("a result has several forms of NaN")
        return number

    def _text(self, length: int) -> str:
        try:
            return str(self._take(length), "utf-8")
        except UnicodeDecodeError:
            raise MalformedMessage("a text in a result is no UTF-8") from None

    # --- containers ---

    def _enter(self, depth: int) -> int:
        if depth >= self._bounds.most_depth:
            raise MalformedMessage(f"a result of more than {self._bounds.most_depth} containers within each other")
        self._spend(CONTAINER_ITEMS - 1)
        return depth + 1

    def _check_count(self, count: int, least_bytes: int) -> None:
        if count * least_bytes > self._end - self.at:
            raise MalformedMessage(f"a result says that {count:,} values follow, and {self._end - self.at:,} bytes do")

    def _list(self, count: int, depth: int) -> list[Any]:
        inner = self._enter(depth)
        self._check_count(count, 1)
        if count > 8 and (numbers := self._floats(count)) is not None:
            return numbers
        return [self.value(inner) for _ in range(count)]

    def _floats(self, count: int) -> list[float] | None:
        """All of a list, at once, if they are floats and none is NaN."""
        run = self._data[self.at : min(self.at + 9 * count, self._end)]
        if len(run) < 9 * count or run[0] != _FLOAT or bytes(run[::9]).count(_FLOAT) < count:
            return None
        numbers = [number for (number,) in struct.iter_unpack(">xd", run)]
        if any(number != number for number in numbers):
            return None
        self._spend(count)
        self.at += 9 * count
        return numbers

    def _dict(self, count: int, depth: int) -> dict[Any, Any]:
        inner = self._enter(depth)
        self._check_count(count, 2)
        keys, values = [], []
        for _ in range(count):
            keys.append(self.value(inner))
            values.append(self.value(inner))
        self._check_keys(keys)
        found = dict(zip(keys, values, strict=True))
        if len(found) < count:
            raise MalformedMessage("a dict in a result has a key twice")
        return found

    def _list_of(self, what: str, depth: int) -> list[Any]:
        """A list, which is the body of an extension."""
        return self._list(self._count(what), depth)

    def _count(self, what: str) -> int:
        """The head of a list."""
        tag = self._take(1)[0]
        if 0x90 <= tag < 0xA0:
            return tag & 0x0F
        if tag not in (0xDC, 0xDD):
            raise MalformedMessage(f"{what} in a result is not made of a list")
        return self._length(tag)

    def _elements(self, depth: int) -> list[Any]:
        """Of a set."""
        count = self._count("a set")
        inner = self._enter(depth)
        self._check_count(count, 1)
        elements: list[Any] = []
        before = b""
        for _ in range(count):
            begin = self.at
            elements.append(self.value(inner))
            packed = bytes(self._data[begin : self.at])
            if packed <= before:
                raise MalformedMessage("a set in a result is not sorted")
            before = packed
        self._check_keys(elements)
        if len(set(elements)) < count:
            raise MalformedMessage("a set in a result has an element twice")
        return elements

    def _check_keys(self, keys: list[Any]) -> None:
        if mistake := mistake_of_keys(keys):
            raise MalformedMessage(f"a result has {mistake}")

    # --- extensions ---

    def _extension(self, length: int, depth: int) -> Any:
        kind = self._take(1)[0]
        body = self._bodies.get(kind)
        if body is None:
            raise MalformedMessage(f"a result has an extension of unknown type {kind}")
        if length > self._end - self.at:
            raise MalformedMessage(f"a result says that {length:,} bytes follow, and {self._end - self.at:,} do")
        outer, self._end = self._end, self.at + length
        value = body(depth)
        if self.at != self._end:
            raise MalformedMessage(f"{self._end - self.at:,} bytes behind a value of a result")
        self._end = outer
        return value

    def _rest(self) -> memoryview:
        """Of the body."""
        return self._take(self._end - self.at)

    def _long_int(self) -> int:
        data = self._rest()
        if len(data) > LONGEST_INT:
            raise MalformedMessage(f"an integer of {len(data):,} bytes in a result; at most {LONGEST_INT:,}")
        number = int.from_bytes(data, "big", signed=True)
        if -(2**63) <= number < 2**64 or len(data) != (number if number >= 0 else ~number).bit_length() // 8 + 1:
            raise MalformedMessage("a number in a result is written longer than it has to be")
        return number

    def _date(self, form: Form) -> Any:
        try:
            text = str(self._rest()[:64], "ascii")
            value = _DATES[form].fromisoformat(text)  # type: ignore[attr-defined]
        except ValueError:
            raise MalformedMessage("a date or time in a result is none") from None
        if value.isoformat() != text:
            raise MalformedMessage("a date or time in a result is written in another way than Python does")
        return value

    def _timedelta(self) -> datetime.timedelta:
        parts = [self.value(0) for _ in range(self._count("a time span"))]
        try:
            value = datetime.timedelta(*parts)
        except (TypeError, OverflowError, ValueError):
            raise MalformedMessage("a time span in a result is none") from None
        if [value.days, value.seconds, value.microseconds] != parts or any(type(part) is not int for part in parts):
            raise MalformedMessage("a time span in a result is written in another way than Python does")
        return value

    # --- numpy ---

    def _scalar(self) -> Any:
        self._parts("a scalar", 2)
        dtype = self._dtype()
        return array_of(dtype, (), self._raw(), 1)[()]

    def _array(self, depth: int) -> Any:
        self._enter(depth)
        self._parts("an array", 3)
        dtype = self._dtype()
        axes = self._count("the shape of an array")
        if axes > MOST_AXES:
            raise MalformedMessage(f"an array of {axes:,} axes; at most {MOST_AXES}")
        shape = [self.value(0) for _ in range(axes)]
        return array_of(dtype, shape, self._raw(), self._bounds.most_items)

    def _masked(self, depth: int) -> Any:
        import numpy as np

        inner = self._enter(depth)
        self._parts("a masked array", 3)
        data = self._part(inner)
        mask = self._part(inner, may_lack=True)
        fill = self._part(inner)
        if fill.shape != () or fill.dtype != data.dtype:
            raise MalformedMessage("a masked array that is filled with something else")
        if mask is None:
            return np.ma.MaskedArray(data, fill_value=fill[()])
        if mask.dtype != np.bool_ or mask.shape != data.shape:
            raise MalformedMessage("a masked array whose mask has another shape")
        return np.ma.MaskedArray(data, mask, fill_value=fill[()])

    def _part(self, depth: int, *, may_lack: bool = False) -> Any:
        """An array of a masked one."""
        import numpy as np

        value = self.value(depth)
        if type(value) is not np.ndarray and not (may_lack and value is None):
            raise MalformedMessage("a masked array of something else than arrays")
        return value

    def _parts(self, what: str, count: int) -> None:
        if self._count(what) != count:
            raise MalformedMessage(f"{what} in a result is not made of {count} parts")

    def _dtype(self) -> str:
        tag = self._take(1)[0]
        if not 0xA0 <= tag <= 0xA0 + LONGEST_DTYPE:
            raise MalformedMessage("an array in a result has no dtype")
        return self._text(tag & 0x1F)

    def _raw(self) -> memoryview:
        """Bytes, not copied."""
        tag = self._take(1)[0]
        if tag not in (0xC4, 0xC5, 0xC6):
            raise MalformedMessage("an array in a result has no bytes")
        return self._take(self._length(tag))
