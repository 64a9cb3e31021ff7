"""A value to bytes, in the sandbox. Pure."""

from __future__ import annotations

import datetime
import operator
import struct
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import msgpack

from axonp2p.errors import NotPlain
from axonp2p.plain_text import bytes_text
from axonp2p.values.arrays import NoArrayForm, array_parts
from axonp2p.values.bounds import CONTAINER_ITEMS, LONGEST_INT, MOST_AXES, ItemBudget, ResultBounds
from axonp2p.values.forms import DATE_KINDS, NAN, Form, mistake_of_keys
from axonp2p.values.not_plain import not_plain

_SIMPLE = {type(None), bool, int, float, str, bytes}
"""msgpack packs a list of these at once, as this file would."""
_LARGEST = 2**64
_SMALLEST = -(2**63)
_FIXED_EXTENSIONS = {1: 0xD4, 2: 0xD5, 4: 0xD6, 8: 0xD7, 16: 0xD8}
_SAME_ANYWHERE = "values of this kind are bounded, so that the computer that gets them stays safe"


def pack_value(value: Any, bounds: ResultBounds | None = None) -> bytes:
    """The one form of a value. Raises `NotPlain` for what has none, or is over a bound; no other error.

    Subclasses of dict from `collections` come back as dict, bytearrays not at all: what is not exactly of a plain type
    is refused.
    """
    writer = _Writer(bounds or ResultBounds())
    try:
        writer.add(value, "", 0)
    except RecursionError:  # a `__hash__` or `__eq__` of a key
        raise not_plain(value) from None
    return b"".join(writer.parts)


class _Writer:
    def __init__(self, bounds: ResultBounds) -> None:
        self.parts: list[bytes | memoryview] = []
        self._size = 0
        self._bounds = bounds
        self._budget = ItemBudget(bounds.most_items)
        self._ways: dict[type, Callable[[Any, str, int], None]] = {
            type(None): self._add_simple,
            bool: self._add_simple,
            int: self._add_int,
            float: self._add_float,
            str: self._add_text,
            bytes: self._add_bytes,
            list: self._add_list,
            tuple: self._add_tuple,
            complex: self._add_complex,
            set: self._add_set,
            frozenset: self._add_set,
            datetime.timedelta: self._add_timedelta,
            **dict.fromkeys(DATE_KINDS, self._add_date),
            **dict.fromkeys((dict, OrderedDict, defaultdict, Counter), self._add_dict),
        }

    def add(self, value: Any, path: str, depth: int) -> None:
        """Behind what there is already. `path` is where it is in the result, for errors."""
        if not self._budget.spend(1):
            raise self._over(f"{self._bounds.most_items:,} values")
        way = self._ways.get(type(value))
        if way is None:
            way = self._add_numpy if type(value).__module__.split(".")[0] == "numpy" else self._refuse
        way(value, path, depth)

    def _put(self, *parts: bytes | memoryview) -> None:
        for part in parts:
            self.parts.append(part)
            self._size += len(part)
        if self._size > self._bounds.most_bytes:
            raise self._over(bytes_text(self._bounds.most_bytes))

    def _over(self, bound: str) -> NotPlain:
        return NotPlain(
            f"the result is larger than {bound}", cause=_SAME_ANYWHERE, fix='return less, or raise "most-result"'
        )

    def _refuse(self, value: Any, path: str, depth: int) -> None:
        raise not_plain(value, path)

    def _enter(self, depth: int) -> int:
        """The depth within a container. Raises `NotPlain` where it is too deep."""
        if depth >= self._bounds.most_depth:
            fix = "return flatter data, such as a list of (path, value)"
            raise NotPlain(
                f"the result has more than {self._bounds.most_depth} containers within each other",
                cause=_SAME_ANYWHERE,
                fix=fix,
            )
        if not self._budget.spend(CONTAINER_ITEMS - 1):
            raise self._over(f"{self._bounds.most_items:,} values")
        return depth + 1

    # --- values without others in them ---

    def _add_simple(self, value: Any, path: str, depth: int) -> None:
        self._put(msgpack.packb(value))

    def _add_int(self, value: int, path: str, depth: int) -> None:
        if _SMALLEST <= value < _LARGEST:
            self._put(msgpack.packb(value))
            return
        length = (value if value >= 0 else ~value).bit_length() // 8 + 1
        if length > LONGEST_INT:
            raise NotPlain(
                f"an integer of {length:,} bytes cannot travel back (result{path}); at most {LONGEST_INT:,} bytes",
                cause=_SAME_ANYWHERE,
                fix="return its text, or its bytes",
            )
        self._put_extension(Form.LONG_INT, value.to_bytes(length, "big", signed=True))

    def _add_float(self, value: float, path: str, depth: int) -> None:
        self._put(b"\xcb" + _float_bits(value))

    def _add_text(self, value: str, path: str, depth: int) -> None:
        try:
            self._put(msgpack.packb(value))
        except UnicodeEncodeError:
            raise NotPlain(
                f"a text that is no Unicode cannot travel back (result{path})",
                cause="half a character (a lone surrogate) is in it, as in names of files that are no UTF-8",
                fix="return os.fsencode(...) of it",
            ) from None

    def _add_bytes(self, value: bytes, path: str, depth: int) -> None:
        self._put(_head_of_bytes(len(value)), value)  # not by msgpack, which copies them

    def _add_complex(self, value: complex, path: str, depth: int) -> None:
        self._put_extension(Form.COMPLEX, _float_bits(value.real) + _float_bits(value.imag))

    def _add_date(self, value: Any, path: str, depth: int) -> None:
        zone = getattr(value, "tzinfo", None)
        if getattr(value, "fold", 0) or (zone is not None and type(zone) is not datetime.timezone):
            raise NotPlain(
                f"a time in {zone or 'the hour that a change of clocks repeats'} cannot travel back (result{path})",
                cause="the rules of a time zone differ from computer to computer",
                fix="return it in UTC: .astimezone(datetime.timezone.utc)",
            )
        self._put_extension(DATE_KINDS[type(value)], value.isoformat().encode())

    def _add_timedelta(self, value: datetime.timedelta, path: str, depth: int) -> None:
        self._put_extension(Form.TIMEDELTA, msgpack.packb([value.days, value.seconds, value.microseconds]))

    # --- containers ---

    def _add_list(self, value: list[Any] | tuple[Any, ...], path: str, depth: int) -> None:
        inner = self._enter(depth)
        kinds = set(map(type, value))
        if kinds <= _SIMPLE and not (float in kinds and any(map(operator.ne, value, value))):
            try:
                packed = msgpack.packb(value)
            except (ValueError, OverflowError):
                pass  # one of them has another form, or none: found below
            else:
                if not self._budget.spend(len(value)):
                    raise self._over(f"{self._bounds.most_items:,} values")
                self._put(packed)
                return
        self._put(msgpack.Packer().pack_array_header(len(value)))
        for place, one in enumerate(value):
            self.add(one, f"{path}[{place}]", inner)

    def _add_tuple(self, value: tuple[Any, ...], path: str, depth: int) -> None:
        self._within(Form.TUPLE, lambda: self._add_list(value, path, depth))

    def _add_dict(self, value: dict[Any, Any], path: str, depth: int) -> None:
        inner = self._enter(depth)
        self._check_keys(list(value), path)
        self._put(msgpack.Packer().pack_map_header(len(value)))
        for key, one in value.items():
            self.add(key, path, inner)
            self.add(one, f"{path}[{key!r:.40}]", inner)

    def _add_set(self, value: set[Any] | frozenset[Any], path: str, depth: int) -> None:
        inner = self._enter(depth)
        self._check_keys(list(value), path)
        packed, mark, size = [], len(self.parts), self._size
        for one in value:
            self.add(one, path, inner)
            packed.append(b"".join(self.parts[mark:]))
            del self.parts[mark:]
        self._size = size
        body = msgpack.Packer().pack_array_header(len(packed)) + b"".join(sorted(packed))
        self._put_extension(Form.SET if type(value) is set else Form.FROZENSET, body)

    def _check_keys(self, keys: list[Any], path: str) -> None:
        if mistake := mistake_of_keys(keys):
            raise NotPlain(
                f"{mistake} cannot travel back (result{path})",
                cause="keys are compared, and have to be the same at each computer",
                fix="use text, numbers, or tuples of these as keys",
            )

    # --- numpy ---

    def _add_numpy(self, value: Any, path: str, depth: int) -> None:
        import numpy as np

        try:
            if type(value) in (np.ndarray, np.memmap):
                self._add_array(value, depth)
            elif type(value) is np.ma.MaskedArray:
                self._add_masked(value, depth)
            elif isinstance(value, np.generic):
                text, _, raw = array_parts(np.asarray(value))
                self._within(Form.SCALAR, lambda: self._put(b"\x92", msgpack.packb(text), *_bytes_of(raw)))
            else:
                raise not_plain(value, path)
        except NoArrayForm as error:
            raise NotPlain(
                f"an array of {error} cannot travel back" + (f" (result{path})" if path else ""),
                cause="arrays come back as numbers, truth values, times or text, never as objects",
                fix="return a list of its values, or one array for each field",
            ) from None

    def _add_array(self, value: Any, depth: int) -> None:
        self._enter(depth)
        text, shape, raw = array_parts(value)
        empty = 1
        for length in shape:
            empty *= length or 1
        if len(shape) > MOST_AXES or (not len(raw) and empty > self._bounds.most_items):
            raise NoArrayForm(f"shape {shape}")
        self._within(
            Form.ARRAY, lambda: self._put(b"\x93", msgpack.packb(text), msgpack.packb(list(shape)), *_bytes_of(raw))
        )

    def _add_masked(self, value: Any, depth: int) -> None:
        import numpy as np

        def body() -> None:
            inner = self._enter(depth)
            self._put(b"\x93")
            self._add_array(value.data, inner)
            if value.mask is np.ma.nomask:
                self._put(b"\xc0")
            else:
                self._add_array(value.mask, inner)
            self._add_array(np.asarray(value.fill_value, value.dtype), inner)

        self._within(Form.MASKED, body)

    # --- extensions ---

    def _put_extension(self, form: Form, body: bytes) -> None:
        self._put(_head_of_extension(form, len(body)), body)

    def _within(self, form: Form, add_body: Callable[[], None]) -> None:
        """An extension whose body is added by `add_body`; its head, which has the length, is put in front then."""
        mark, size = len(self.parts), self._size
        self.parts.append(b"")
        add_body()
        head = _head_of_extension(form, self._size - size)
        self.parts[mark] = head
        self._size += len(head)


def _float_bits(value: float) -> bytes:
    return struct.pack(">d", value) if value == value else NAN


def _head_of_bytes(length: int) -> bytes:
    if length < 2**8:
        return struct.pack(">BB", 0xC4, length)
    return struct.pack(">BH", 0xC5, length) if length < 2**16 else struct.pack(">BI", 0xC6, length)


def _bytes_of(raw: Any) -> tuple[bytes, memoryview]:
    """Head and bytes of an array, not copied."""
    return _head_of_bytes(len(raw)), memoryview(raw)


def _head_of_extension(form: Form, length: int) -> bytes:
    if length in _FIXED_EXTENSIONS:
        return struct.pack(">BB", _FIXED_EXTENSIONS[length], form)
    if length < 2**8:
        return struct.pack(">BBB", 0xC7, length, form)
    if length < 2**16:
        return struct.pack(">BHB", 0xC8, length, form)
    return struct.pack(">BIB", 0xC9, length, form)
