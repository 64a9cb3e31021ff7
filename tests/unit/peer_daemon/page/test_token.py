"""The page's token: made once, for its owner's eyes."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.errors import NotFound, SettingsError
from peer_daemon.page.token import TOKEN_FILE, kept_token, page_address, write_address

URL = "http://127.0.0.1:7072/"


def test_the_address_carries_the_token_where_no_server_sees_it(tmp_path: Path) -> None:
    token = kept_token(tmp_path / TOKEN_FILE)
    write_address(tmp_path / TOKEN_FILE, URL, token)
    assert page_address(tmp_path) == f"{URL}#token={token}"
    assert len(bytes.fromhex(token)) == 32
    assert (tmp_path / TOKEN_FILE).stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == [TOKEN_FILE]


def test_it_is_kept_when_the_daemon_starts_anew(tmp_path: Path) -> None:
    file = tmp_path / TOKEN_FILE
    token = kept_token(file)
    write_address(file, URL, token)
    assert kept_token(file) == token
    write_address(file, "http://127.0.0.1:9999/", kept_token(file))
    assert page_address(tmp_path) == f"http://127.0.0.1:9999/#token={token}"


def test_one_that_others_could_read_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / TOKEN_FILE
    write_address(file, URL, "5e" * 32)
    file.chmod(0o644)
    token = kept_token(file)
    assert token != "5e" * 32
    write_address(file, URL, token)
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "nonsense", "http://127.0.0.1:7072/#token=short", "\xff" * 99])
def test_a_spoilt_file_is_no_token(tmp_path: Path, text: str) -> None:
    (tmp_path / TOKEN_FILE).write_text(text)
    (tmp_path / TOKEN_FILE).chmod(0o600)
    assert len(kept_token(tmp_path / TOKEN_FILE)) == 64
    with pytest.raises(NotFound):
        page_address(tmp_path)


def test_without_a_daemon_there_is_no_address(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as raised:
        page_address(tmp_path)
    assert "axon-peer run" in raised.value.fix


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        write_address(tmp_path / "gone" / TOKEN_FILE, URL, "5e" * 32)
