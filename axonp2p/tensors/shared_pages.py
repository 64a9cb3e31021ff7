"""Tensors of two processes that hold the same bytes share their memory: pages of one file lie under both.

The tensors stay at their addresses, so whatever else refers to their memory still does. A value that one process writes
to a tensor is not seen by the other: a write makes a copy of its page (`MAP_PRIVATE`). One written to the file is seen:
it is no wall between the two, and needs none where both run the same code. The file belongs in a tmpfs.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable, Iterator

import numpy
from numpy.typing import NDArray
from torch import Tensor

_LEAST_BYTES = 2**18
"""Of a tensor: smaller ones share nothing."""
_PAGE = mmap.PAGESIZE


def write_pages(file: int, tensors: Iterable[Tensor]) -> None:
    """Write the whole pages of these tensors into an empty file, and put it under them.

    Raises `OSError` where there is no room for all: those that came before share their pages all the same.
    """
    for offset, pages in _pages_of(tensors):
        data = pages.data
        try:
            while data:
                written = os.pwrite(file, data, offset + len(pages) - len(data))
                data = data[written:]
        except OSError:
            os.ftruncate(file, offset)  # a part of a tensor is of use to nobody, and others need the room
            raise
        _put_under(pages, file, offset)


def share_pages(file: int, tensors: Iterable[Tensor]) -> int:
    """Put the file under each of these tensors that has the bytes which another process wrote for it.

    Gives how many bytes are shared. Raises `OSError`.
    """
    shared = 0
    with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as written:
        for offset, pages in _pages_of(tensors):
            there = numpy.frombuffer(written, numpy.uint8)[offset : offset + len(pages)]
            # Pages begin elsewhere in a tensor that lies at another place of its first page: then they differ.
            if numpy.array_equal(there, pages):
                _put_under(pages, file, offset)
                shared += len(pages)
            del there  # a view of a mapping keeps it from being closed
    return shared


def _pages_of(tensors: Iterable[Tensor]) -> Iterator[tuple[int, NDArray[numpy.uint8]]]:
    """Of each tensor that is large enough: where its pages are in the file, and those that it has for itself."""
    offset = 0
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        if size < _LEAST_BYTES or tensor.device.type != "cpu" or not tensor.is_contiguous():
            continue
        first = -(-tensor.data_ptr() // _PAGE) * _PAGE
        length = (tensor.data_ptr() + size - first) // _PAGE * _PAGE
        yield offset, numpy.ctypeslib.as_array((ctypes.c_uint8 * length).from_address(first))
        offset += length + _PAGE


def _put_under(pages: NDArray[numpy.uint8], file: int, offset: int) -> None:
    address, access = pages.ctypes.data, mmap.PROT_READ | mmap.PROT_WRITE
    found = _mmap(address, len(pages), access, mmap.MAP_PRIVATE | _MAP_FIXED, file, offset)
    if found != address:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


_MAP_FIXED = 0x10
"""Of Linux; Python's `mmap` has no name for it."""
_mmap = ctypes.CDLL(None, use_errno=True).mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
