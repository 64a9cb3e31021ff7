"""The key on disk: for its owner alone, whole or not at all, and the same for everybody who asks at once."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from axonp2p.errors import KeyFileUnsafe
from axonp2p.identity.key_file import load_or_create_key


def test_a_key_is_made_once_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "home" / "key"
    first = load_or_create_key(path)
    assert load_or_create_key(path).seed == first.seed
    assert os.listdir(path.parent) == ["key"]


def test_only_its_owner_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        load_or_create_key(tmp_path / "home" / "key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "home" / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_key_that_others_may_touch_is_refused_with_the_cure(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    load_or_create_key(path)
    path.chmod(mode)
    with pytest.raises(KeyFileUnsafe, match="can be read by others") as caught:
        load_or_create_key(path)
    assert caught.value.fix == f"chmod 600 {path}"


@pytest.mark.parametrize("content", [b"", b"\n", b"zz" * 32, b"ab" * 31, b"ab" * 33, b"\xff\xfe" * 32, b"\0" * 1000])
def test_what_is_no_key_is_not_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(KeyFileUnsafe, match="does not hold a key"):
        load_or_create_key(path)
    assert path.read_bytes() == content


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    load_or_create_key(tmp_path / "key")
    (tmp_path / "link").symlink_to(tmp_path / "key")
    with pytest.raises(KeyFileUnsafe, match="cannot read the key"):
        load_or_create_key(tmp_path / "link")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    with pytest.raises(KeyFileUnsafe):
        load_or_create_key(tmp_path / "dangling")
    assert not (tmp_path / "nothing").exists()


def test_many_at_once_get_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with ThreadPoolExecutor(8) as pool:
        seeds = set(pool.map(lambda _: load_or_create_key(path).seed, range(32)))
    assert len(seeds) == 1
    assert os.listdir(tmp_path) == ["key"]


def test_what_a_crash_left_behind_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / f".key.{os.getpid()}").write_text("half")
    assert load_or_create_key(tmp_path / "key").seed == load_or_create_key(tmp_path / "key").seed


def test_a_folder_that_cannot_be_made_is_the_owners_to_mend(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KeyFileUnsafe):
        load_or_create_key(tmp_path / "file" / "key")
