"""Functions and arguments out and in again: code by value, arrays by name, versions compared."""

from __future__ import annotations

import importlib.util
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest
import scipy.sparse

from axonp2p.calls.form import SMALLEST_BLOB, here
from axonp2p.calls.opening import load_call, load_function
from axonp2p.calls.packing import CallPacker, PackedBytes
from axonp2p.errors import MalformedMessage, NotPicklable, VersionMismatch

LARGE = np.random.default_rng(0).normal(size=(100, 50))


def opened(packed: PackedBytes) -> tuple[Any, ...]:
    """The positional arguments."""
    return load_call(packed.data, packed.blobs.__getitem__)[0]


def no_blob(name: str) -> bytes:
    raise AssertionError(f"blob {name} is asked for")


# --- arrays ---


def test_large_arrays_are_left_out_and_read_where_they_are() -> None:
    packed = CallPacker().pack_call((LARGE, [LARGE]), {"again": LARGE})
    assert len(packed.data) < 1000
    [(name, content)] = packed.blobs.items()
    assert np.shares_memory(np.frombuffer(content, np.uint8), LARGE)
    held = bytes(content)
    args, kwargs = load_call(packed.data, {name: held}.__getitem__)
    for array in (args[0], args[1][0], kwargs["again"]):
        assert np.array_equal(array, LARGE)
        assert np.shares_memory(array, np.frombuffer(held, np.uint8))
        assert not array.flags.writeable


def test_small_arrays_stay_in_the_pickle() -> None:
    assert CallPacker().pack_call((np.zeros(SMALLEST_BLOB // 8 - 1),), {}).blobs == {}
    assert CallPacker().pack_call((np.zeros(SMALLEST_BLOB // 8),), {}).blobs


@pytest.mark.parametrize(
    "array",
    [
        *(LARGE.T, LARGE[::2], LARGE.reshape(10, 10, 50).transpose(1, 0, 2), np.broadcast_to(LARGE[:1], (100, 50))),
        *(LARGE.astype(">f8"), LARGE.astype("M8[ms]"), LARGE.astype(np.complex64), np.tile(LARGE > 0, 4)),
        np.repeat(["text", "more"], 4000),
    ],
    ids=lambda array: f"{array.dtype}{array.strides}",
)
def test_arrays_keep_dtype_shape_and_order_of_memory(array: np.ndarray[Any, Any]) -> None:
    packed = CallPacker().pack_call((array,), {})
    assert len(packed.blobs) == 1
    [found] = opened(packed)
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)
    assert found.flags.f_contiguous == array.flags.f_contiguous


def test_equal_arrays_are_one_blob_whatever_their_shape() -> None:
    packed = CallPacker().pack_call((LARGE, LARGE.copy(), LARGE.reshape(-1)), {})
    assert len(packed.blobs) == 1
    assert [array.shape for array in opened(packed)] == [(100, 50), (100, 50), (5000,)]


def test_an_array_that_changes_between_calls_is_sent_as_it_is_then() -> None:
    packer, array = CallPacker(), LARGE.copy()
    before = packer.pack_call((array,), {})
    names = list(before.blobs)
    np.random.default_rng(1).shuffle(array)
    after = packer.pack_call((array,), {})
    assert list(after.blobs) != names
    assert np.array_equal(opened(after)[0], array)


def test_an_array_that_cannot_change_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    array = LARGE.copy()
    array.setflags(write=False)
    packer = CallPacker()
    first = packer.pack_call((array,), {})
    monkeypatch.setattr("axonp2p.calls.packing.hashlib", None)
    assert packer.pack_call((array,), {}).blobs.keys() == first.blobs.keys()


def test_a_read_only_view_of_an_array_that_can_change_is_hashed_at_each_call() -> None:
    array = LARGE.copy()
    view = array[:]
    view.setflags(write=False)
    packer = CallPacker()
    before = list(packer.pack_call((view,), {}).blobs)
    array[0] = 0
    assert list(packer.pack_call((view,), {}).blobs) != before


def test_names_of_arrays_go_with_them() -> None:
    packer = CallPacker()
    for number in range(50):
        array = LARGE + number
        array.setflags(write=False)
        packed = packer.pack_call((array,), {})
        assert np.array_equal(opened(packed)[0], array)
        del array, packed
    assert not packer._names


def test_arrays_within_sparse_matrices_are_left_out() -> None:
    sparse = scipy.sparse.random(300, 300, 0.2, format="csr", random_state=0)
    packed = CallPacker().pack_call((sparse,), {})
    assert len(packed.data) < 5000
    assert sum(map(len, packed.blobs.values())) > 200_000
    assert (opened(packed)[0] != sparse).nnz == 0


def test_a_blob_of_another_length_is_refused() -> None:
    packed = CallPacker().pack_call((LARGE,), {})
    with pytest.raises(MalformedMessage, match="a blob of 8 bytes"):
        load_call(packed.data, lambda name: b"\0" * 8)


# --- functions ---


def test_a_function_is_packed_once_and_by_value() -> None:
    packer, offset = CallPacker(), 5

    def add(number: int) -> int:
        return number + offset

    packed = packer.pack(add)
    assert packer.pack(add) is packed
    assert load_function(packed.data, no_blob)(1) == 6


def test_a_function_that_is_gone_is_not_mistaken_for_another() -> None:
    packer = CallPacker()
    for number in range(100):
        packed = packer.pack(lambda number=number: number)
        assert load_function(packed.data, no_blob)() == number


def test_an_array_that_a_function_refers_to_is_left_out() -> None:
    packed = CallPacker().pack(lambda: LARGE.sum())
    assert load_function(packed.data, packed.blobs.__getitem__)() == LARGE.sum()
    assert packed.blobs


def module(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text("def work(number):\n    return number * 2\n")
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, loaded)
    spec.loader.exec_module(loaded)
    return loaded


def test_modules_of_the_folder_travel_and_others_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packer = CallPacker(tmp_path / "job")
    own = module(tmp_path / "job", "own_words", monkeypatch)
    other = module(tmp_path / "elsewhere", "other_words", monkeypatch)
    installed = module(tmp_path / "job" / ".venv" / "site-packages", "installed_words", monkeypatch)
    packed = {one.__name__: packer.pack(one.work) for one in (own, other, installed)}
    for name in packed:
        monkeypatch.delitem(sys.modules, name)  # as at a peer
    assert load_function(packed["own_words"].data, no_blob)(4) == 8
    for name in ("other_words", "installed_words"):
        with pytest.raises(ModuleNotFoundError, match=name):
            load_function(packed[name].data, no_blob)


def test_what_cannot_be_pickled_is_refused_with_the_way_out() -> None:
    with pytest.raises(NotPicklable, match=r"(?s)lock.*inside the function"):
        CallPacker().pack_call((threading.Lock(),), {})
    with pytest.raises(NotPicklable, match="generator"):
        CallPacker().pack_call(((number for number in range(3)),), {})


# --- versions ---


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"python": "3.9"}, "packed with Python 3.9; this peer has 3."),
        ({"cloudpickle": "1"}, "packed with cloudpickle 1; this peer has 3"),
        ({"numpy": "1"}, "packed with numpy 1; this peer has 2"),
        ({"form": 9}, "a call in form 9"),
    ],
)
def test_another_version_is_told_by_name_before_anything_is_opened(changed: dict[str, Any], told: str) -> None:
    packed = msgspec.structs.replace(here(b"no pickle at all"), **changed)
    with pytest.raises(VersionMismatch, match=told):
        load_function(msgspec.msgpack.encode(packed), no_blob)


def test_what_is_no_function_or_call_is_refused() -> None:
    packer = CallPacker()
    with pytest.raises(MalformedMessage, match="not a packed function or call"):
        load_function(b"abc", no_blob)
    with pytest.raises(MalformedMessage, match="not the packed arguments"):
        load_call(packer.pack(len).data, no_blob)
    with pytest.raises(MalformedMessage, match="cannot be called"):
        load_function(packer.pack_call((1,), {}).data, no_blob)
