"""The C library's handling of memory that frames went through: kept during a job, and given back afterwards.

By default the library returns every free half megabyte to the kernel at once, and each frame then takes it anew, page
by page: a quarter of all the processor time that a daemon needs to carry bytes (measured).
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Of mallopt(3)."""
_KEPT_BYTES = 8 * 1024 * 1024
_LARGE_BYTES = 4 * 1024 * 1024
"""More than any frame."""
_USUAL_KEPT_BYTES = 128 * 1024


def keep() -> None:
    """Keep a few free megabytes for the next frames. Does nothing where libc is not glibc."""
    _set(_KEPT_BYTES)


def give_back() -> None:
    """Return what is free in the heap to the kernel, in some milliseconds. Does nothing where libc is not glibc."""
    _set(_USUAL_KEPT_BYTES)
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _set(kept_bytes: int) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, kept_bytes)
        mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
