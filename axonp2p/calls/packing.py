"""Functions and arguments to bytes, at the client."""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import msgspec
import numpy as np

from axonp2p.calls.form import ARRAY_MARK, SMALLEST_BLOB, here, is_array
from axonp2p.errors import NotPicklable

_MOST_FUNCTIONS = 32
_INSTALLED = {"site-packages", "dist-packages"}
_PICKLING_ERRORS = (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError, NotImplementedError)
"""The errors of pickling for an object that it cannot take, beside errors of the object's own methods."""


_BY_VALUE_LOCK = threading.Lock()
"""cloudpickle has one list of modules for the whole program, and programs submit from several threads."""


@dataclass(frozen=True)
class PackedBytes:
    """A function, or the arguments of a call."""

    data: bytes
    blobs: Mapping[str, memoryview] = field(default_factory=dict)
    """The arrays that it leaves out, by name. They are the arrays' own memory where that is contiguous: send or write
    them before the arrays may change."""


class CallPacker:
    """Packs functions and arguments of one client.

    A function is packed once and kept, with what it refers to at that moment: a global variable that changes later does
    not change at the peers. Arguments are packed at every call. An array among them is hashed at every call too, for it
    may have changed since; only arrays that cannot change (`array.setflags(write=False)`) are hashed once.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Modules of `folder` are sent by value, as everything of `__main__` is; peers import all others by name."""
        self._folder = folder.resolve() if folder else None
        self._lock = threading.Lock()
        self._functions: OrderedDict[int, tuple[Callable[..., Any], PackedBytes]] = OrderedDict()
        self._modules: tuple[int, list[ModuleType]] = (0, [])
        self._names: dict[int, tuple[weakref.ref[Any], str]] = {}
        """Of arrays that cannot change."""

    def pack(self, function: Callable[..., Any]) -> PackedBytes:
        """A function. Raises `NotPicklable`."""
        with self._lock:
            key = id(function)
            if key not in self._functions:
                self._functions[key] = (function, self._pack(function))
                if len(self._functions) > _MOST_FUNCTIONS:
                    self._functions.popitem(last=False)
            self._functions.move_to_end(key)
            return self._functions[key][1]

    def pack_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> PackedBytes:
        """The arguments of a call. Raises `NotPicklable`."""
        return self._pack((args, dict(kwargs)))

    def _pack(self, value: Any) -> PackedBytes:
        file = io.BytesIO()
        pickler = _Pickler(file, self._name)
        try:
            with _BY_VALUE_LOCK, _by_value(self._own_modules()):
                pickler.dump(value)
        except _PICKLING_ERRORS as error:
            raise NotPicklable(
                f"cannot be sent: {error}",
                cause="functions and arguments travel as pickles",
                fix="open files, locks, connections and generators inside the function; pass plain data to it",
            ) from error
        return PackedBytes(msgspec.msgpack.encode(here(file.getvalue())), pickler.blobs)

    def _own_modules(self) -> list[ModuleType]:
        """The modules of the folder that are loaded."""
        if self._folder is None:
            return []
        loaded, found = self._modules
        if loaded != len(sys.modules):
            found = [module for module in list(sys.modules.values()) if self._is_own(module)]
            self._modules = (len(sys.modules), found)
        return found

    def _is_own(self, module: ModuleType) -> bool:
        name, file = getattr(module, "__name__", ""), getattr(module, "__file__", None)
        if not isinstance(file, str) or sys.modules.get(name) is not module or name.split(".")[0] == "axonp2p":
            return False
        path = Path(file)
        return path.is_relative_to(self._folder or path) and not _INSTALLED.intersection(path.parts)

    def _name(self, array: Any, content: memoryview) -> str:
        constant = _cannot_change(array)
        known = self._names.get(id(array))
        if constant and known is not None and known[0]() is array:
            return known[1]
        name = hashlib.sha256(content).hexdigest()
        if constant:
            key = id(array)
            self._names[key] = (weakref.ref(array, lambda _: self._names.pop(key, None)), name)
        return name


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Leaves arrays out."""

    def __init__(self, file: io.BytesIO, name: Callable[[Any, memoryview], str]) -> None:
        super().__init__(file)
        self.blobs: dict[str, memoryview] = {}
        self._name = name
        self._seen: dict[int, tuple[Any, Any]] = {}
        """Arrays of this pickle with their persistent ids. They are held, so that no other gets an id of theirs."""

    def persistent_id(self, value: Any) -> Any:
        """Of an array that is left out; None for all else."""
        if not isinstance(value, np.ndarray) or value.nbytes < SMALLEST_BLOB or not is_array(value, np):
            return None
        seen = self._seen.get(id(value))
        if seen is None:
            seen = self._seen[id(value)] = (value, self._leave_out(value))
        return seen[1]

    def _leave_out(self, array: Any) -> Any:
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        flat = np.ascontiguousarray(array.T if order == "F" else array).reshape(-1)
        content = flat.view(np.uint8).data.toreadonly()
        name = self._name(array, content)
        self.blobs[name] = content
        return (ARRAY_MARK, name, array.dtype.str, array.shape, order)


def _cannot_change(array: Any) -> bool:
    """Whether neither it nor what it is a view of can be written to."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None or isinstance(array, bytes)


@contextmanager
def _by_value(modules: list[ModuleType]) -> Iterator[None]:
    """In here these modules are sent by value."""
    listed = cloudpickle.list_registry_pickle_by_value()
    mine = [module for module in modules if module.__name__ not in listed]
    for module in mine:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in mine:
            cloudpickle.unregister_pickle_by_value(module)
