"""The layout of a model's file: which tensors it has, and where in a state their values stand. Pure.

A state has no names or shapes, so each worker tells them once, with `Prepared`. Members must agree on them as they
agree on the model's size. The tensors must together be all of the weights, and of the frozen parameters, whose file
the state names: so the file holds what the state's name proves, and only names, shapes and types are the word of the
members.
"""

from __future__ import annotations

import json
import math
import struct
from typing import get_args

from axonp2p.errors import MalformedMessage
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.tensors.frozen_name import NAME_VALUES
from axonp2p.training.messages import Dtype, FileLayout, TensorInfo
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.frame import PAYLOAD_LIMIT

MOST_BYTES = PAYLOAD_LIMIT // 2
"""Of a layout as it travels: some 5,000 tensors."""
LANES = 3
"""Values that a wide number takes (`tensors.wide`)."""
FILE_SLACK = 64 * 1024 * 1024
MOST_BYTES_A_VALUE = 16
"""Tensors that are tied stand in the file several times; one that is larger by far than the weights is refused."""
MOST_TIES = 4
"""The same of frozen parameters, for each of their bytes."""
_ALIGNED = 8
_ORDER: tuple[Dtype, ...] = get_args(Dtype)
_WIDE = ("U64", "I64", "F64", "U32", "I32")
_FLOATS = ("C64", "F32", "BF16", "F16", "F8_E4M3", "F8_E5M2")
_CODED: dict[str, tuple[str, ...]] = {
    "wide": _WIDE,
    "bits": ("F64", *_FLOATS),
    "values": (*_FLOATS, "U16", "I16", "I8", "U8", "BOOL"),
    "frozen": _ORDER,
}


def read_layout(data: bytes | memoryview, model: Model) -> FileLayout:
    """The layout that a member told. Raises `PeerMisbehaved` when it is no layout of a file of this model."""
    layout = decode_as(data, FileLayout, MOST_BYTES)
    if fault := _fault(layout, model):
        raise MalformedMessage(f"no layout of the model's file: {fault}")
    return layout


def pack_layout(layout: FileLayout, model: Model) -> bytes:
    """The layout that a member tells. Raises `ValueError`."""
    packed = encode(layout)
    if fault := _fault(layout, model):
        raise ValueError(f"no file can be written of the model: {fault}")
    if len(packed) > MOST_BYTES:
        raise ValueError(
            f"the names and shapes of the model's {len(layout.tensors)} tensors take {len(packed)} bytes; "
            f"{MOST_BYTES} are the most that a member can tell"
        )
    return packed


def frozen_bytes(layout: FileLayout) -> int:
    """How large the file of the frozen parameters is."""
    return max((end for one in layout.tensors if one.coding == "frozen" for _, end in spans_of(one)), default=0)


def file_order(layout: FileLayout) -> list[TensorInfo]:
    """The tensors as safetensors orders them: larger types first, then by name."""
    return sorted(layout.tensors, key=lambda one: (_ORDER.index(one.dtype), one.name.encode()))


def header_of(layout: FileLayout) -> bytes:
    """The header before the tensors' bytes in a safetensors file."""
    said, end = {}, 0
    for one in file_order(layout):
        begin, end = end, end + _bytes(one)
        said[one.name] = {"dtype": one.dtype, "shape": one.shape, "data_offsets": [begin, end]}
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNED)
    return struct.pack("<Q", len(text)) + text


def spans_of(one: TensorInfo) -> list[tuple[int, int]]:
    """Where its values stand in the state: one span, or that of each lane of wide numbers.

    Of a frozen tensor, where its bytes stand in the file of the frozen parameters.
    """
    if one.coding == "wide":
        count = math.prod(one.shape)
        begins = [one.begin + lane * one.apart for lane in range(LANES)]
    else:
        count = _bytes(one) // unit_bytes(one)
        begins = [one.begin]
    return [(begin, begin + count) for begin in begins]


def unit_bytes(one: TensorInfo) -> int:
    """How many bytes of the file come from one value of the state, three of a wide number, a byte of a frozen one."""
    if one.coding == "frozen":
        return 1
    whole = 4 if one.dtype == "C64" else _item_bytes(one.dtype)
    return min(2, whole) if one.coding == "bits" else whole


def _item_bytes(dtype: Dtype) -> int:
    if dtype == "C64":
        return 8
    return 1 if dtype.startswith("F8") or dtype == "BOOL" else int(dtype.lstrip("BFUI")) // 8


def _bytes(one: TensorInfo) -> int:
    return math.prod(one.shape) * _item_bytes(one.dtype)


def _fault(layout: FileLayout, model: Model) -> str:
    names = {one.name for one in layout.tensors}
    if len(names) < len(layout.tensors) or "__metadata__" in names:
        return "a name is there twice, or is __metadata__"
    if odd := [one for one in layout.tensors if one.dtype not in _CODED[one.coding]]:
        return f"{odd[0].dtype} as {odd[0].coding}"
    frozen = [span for one in layout.tensors if one.coding == "frozen" for span in spans_of(one)]
    if not _is_all(frozen, model.frozen):
        return "its tensors are not all of the frozen parameters"
    spans = [span for one in layout.tensors if one.coding != "frozen" for span in spans_of(one)]
    if model.frozen:
        spans.append((layout.frozen_name, layout.frozen_name + NAME_VALUES))
    if not _is_all(spans, model.values):
        return "its tensors are not all of the weights"
    size = sum(_bytes(one) for one in layout.tensors)
    most = FILE_SLACK + MOST_BYTES_A_VALUE * model.values + MOST_TIES * model.frozen
    return f"{size} bytes for {model.values} values; {most} are the most" if size > most else ""


def _is_all(spans: list[tuple[int, int]], count: int) -> bool:
    reached = 0
    for begin, end in sorted(spans):
        if begin > reached:
            return False
        reached = max(reached, end)
    return reached == count
