"""The form that the client packs and a sandbox opens: a pickle, its versions, the arrays it leaves out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import msgspec

from axonp2p.errors import MalformedMessage, VersionMismatch

FORM = 1
SMALLEST_BLOB = 16_384
"""Bytes; smaller arrays stay in the pickle."""
ARRAY_MARK = "axon-array"
"""Of a persistent id, which is (this, name of the blob, dtype, shape, "C" or "F")."""
Version = Annotated[str, msgspec.Meta(max_length=16)]
OpenBlob = Callable[[str], bytes | memoryview]
"""The bytes of a blob, by its name: SHA-256 as hexadecimal digits."""


class Pickled(msgspec.Struct, frozen=True, array_like=True):
    """One pickle on its way."""

    form: Annotated[int, msgspec.Meta(ge=0, le=1000)]
    python: Version
    """Version of Python, such as "3.11": code of functions is its own in each minor version."""
    cloudpickle: Version
    """Major version."""
    numpy: Version
    """Major version."""
    pickle: Annotated[bytes, msgspec.Meta(max_length=2**31)]


_DECODER = msgspec.msgpack.Decoder(Pickled)


def here(pickle: bytes) -> Pickled:
    """A pickle that was made by this Python."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Pickled(FORM, python, _major("cloudpickle"), _major("numpy"), pickle)


@lru_cache
def _major(package: str) -> str:
    try:
        return version(package).split(".")[0]
    except PackageNotFoundError:
        return ""


def read(data: bytes | memoryview) -> Pickled:
    """The pickle, which this Python can open. Raises `MalformedMessage` or `VersionMismatch`."""
    try:
        packed = _DECODER.decode(data)
    except msgspec.MsgspecError as error:
        raise MalformedMessage(f"not a packed function or call: {error}") from error
    own = here(b"")
    if packed.form != FORM:
        raise VersionMismatch(
            f"a call in form {packed.form}; this axonp2p reads {FORM}",
            fix="install the same version of axonp2p on both sides",
        )
    for name, there, mine in (
        ("Python", packed.python, own.python),
        ("cloudpickle", packed.cloudpickle, own.cloudpickle),
        ("numpy", packed.numpy, own.numpy),
    ):
        if there != mine:
            raise VersionMismatch(
                f"the function was packed with {name} {there or 'missing'}; this peer has {mine or 'none'}",
                cause=f"a pickle of one version of {name} cannot be opened by another",
                fix=f"run the client with {name} {mine}, or ask for other peers",
            )
    return packed


def is_array(value: Any, numpy: Any) -> bool:
    """Whether it is an array without Python objects, which may leave the pickle."""
    return type(value) in (numpy.ndarray, numpy.memmap) and value.dtype.kind in "biufcSUMm"
