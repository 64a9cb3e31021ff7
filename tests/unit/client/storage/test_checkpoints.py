"""States on the client's disk: whole or not there, checked by their name, and no more of them than wished."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import safetensors

from axonp2p.blobs.pieces import book_of
from axonp2p.client.storage.checkpoints import Checkpoint, Checkpoints, FrozenFile
from axonp2p.errors import MalformedMessage, SettingsError
from axonp2p.files import DAMAGED
from axonp2p.tensors.checkpoint_file import LONGEST_HEADER, Model, header_length

MODEL = Model(100_000, 120_000)


def state_of(number: int) -> bytes:
    return random.Random(number).randbytes(MODEL.state_bytes)


def keep(shelf: Checkpoints, rounds: int) -> Checkpoint:
    data = state_of(rounds)
    room = shelf.room(rounds, book_of(data).name, MODEL)
    room.data[:] = data
    room.put()
    room.drop()
    found = shelf.find(rounds, book_of(data).name)
    assert found
    return found


def test_a_state_is_read_as_it_was_put_and_opens_as_safetensors(tmp_path: Path) -> None:
    kept = keep(Checkpoints(tmp_path / "states", "line-1", 2), 12)
    assert kept.path.name == f"000012-{kept.state.hex()}.safetensors"
    assert kept.read() == state_of(12)
    assert kept.fits()
    with safetensors.safe_open(kept.path, framework="numpy") as file:
        assert file.metadata() == {
            "format": "axon state 1",
            "job": "line-1",
            "rounds": "12",
            "state": kept.state.hex(),
        }
        assert file.get_tensor("weights").tobytes() + file.get_tensor("momentum").tobytes() == state_of(12)


FROZEN = random.Random(0).randbytes(300_000)


def keep_frozen(shelf: Checkpoints) -> FrozenFile:
    name = book_of(FROZEN).name
    if room := shelf.frozen_room(name, len(FROZEN)):
        room.data[:] = FROZEN
        room.put()
    found = shelf.frozen(name)
    assert found
    return found


def test_frozen_parameters_lie_beside_the_states_once_and_go_with_the_last_of_them(tmp_path: Path) -> None:
    shelf = Checkpoints(tmp_path / "states", "line-1", 1)
    kept = keep_frozen(shelf)
    assert (kept.path.name, kept.pieces) == (f"frozen-{kept.name.hex()}.safetensors", book_of(FROZEN))
    assert bytes(kept.file) == FROZEN
    assert shelf.frozen_room(kept.name, len(FROZEN)) is None
    with safetensors.safe_open(kept.path, framework="numpy") as file:
        assert file.metadata() == {"format": "axon frozen 1", "job": "line-1", "frozen": kept.name.hex()}
        assert file.get_tensor("frozen").tobytes() == FROZEN
    for rounds in (1, 2):
        keep(shelf, rounds)
    shelf.forget_before(2, shelf.all()[0].state)
    assert [one.rounds for one in shelf.all()] == [2]
    assert kept.path.exists()
    shelf.remove_all()
    assert not (tmp_path / "states").exists()


def test_damaged_frozen_parameters_come_once_more(tmp_path: Path) -> None:
    kept = keep_frozen(Checkpoints(tmp_path / "states", "line-1", 1))
    kept.path.write_bytes(kept.path.read_bytes()[:-1] + b"?")
    later = Checkpoints(tmp_path / "states", "line-1", 1)
    damaged = later.frozen(kept.name)
    assert damaged
    assert not damaged.fits()
    assert keep_frozen(later).fits()


def test_a_crash_before_the_end_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    shelf = Checkpoints(tmp_path / "states", "line-1", 2)
    room = shelf.room(1, bytes(32), MODEL)
    assert shelf.all() == []
    shelf.clear_away()
    assert list((tmp_path / "states").iterdir()) == []
    room.drop()


@pytest.mark.parametrize("where", [10, 5000, -1])
def test_one_flipped_bit_is_found_by_the_name(tmp_path: Path, where: int) -> None:
    kept = keep(Checkpoints(tmp_path / "states", "line-1", 2), 3)
    data = bytearray(kept.path.read_bytes())
    data[where] ^= 1
    kept.path.write_bytes(data)
    assert kept.fits() == (where == 10)  # that one is in the header, of which the name says nothing


@pytest.mark.parametrize("content", [b"", b"1234", b"\xff" * 100])
def test_what_is_no_safetensors_file_does_not_fit(tmp_path: Path, content: bytes) -> None:
    kept = keep(Checkpoints(tmp_path / "states", "line-1", 2), 3)
    kept.path.write_bytes(content)
    assert not kept.fits()


@pytest.mark.parametrize("most", [1, 2])
def test_only_the_newest_are_kept_and_what_came_meanwhile(tmp_path: Path, most: int) -> None:
    shelf = Checkpoints(tmp_path / "states", "line-1", most)
    kept = {rounds: keep(shelf, rounds) for rounds in (1, 2, 3, 4, 5)}
    shelf.forget_before(4, kept[4].state)
    assert [one.rounds for one in shelf.all()] == [5, 4, 3][: most + 1]


def test_a_damaged_one_is_put_aside_and_outlives_the_job(tmp_path: Path) -> None:
    shelf = Checkpoints(tmp_path / "states", "line-1", 2)
    kept = keep(shelf, 2)
    keep(shelf, 1)
    aside = shelf.put_aside(kept)
    assert aside.name.endswith(DAMAGED)
    assert [one.rounds for one in shelf.all()] == [1]
    shelf.remove_all()
    assert list((tmp_path / "states").iterdir()) == [aside]


def test_a_folder_that_cannot_be_written_is_a_mistake_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "states").write_text("in the way")
    with pytest.raises(SettingsError, match="cannot write"):
        Checkpoints(tmp_path / "states", "line-1", 2).room(1, bytes(32), MODEL)


def test_a_header_is_bounded_before_it_is_read() -> None:
    with pytest.raises(MalformedMessage):
        header_length((LONGEST_HEADER + 1).to_bytes(8, "little"))
