"""The program as a whole: what there is, what it costs to load, what its log is."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from axonp2p.errors import NotFound, SettingsError
from axonp2p.logs import FILE_BYTES, OLD_FILES, configure_logs, get_logger
from axonp2p.plain_text import mebibytes_of, seconds_of
from peer_daemon.log_file import Follower, last_lines, log_path
from peer_daemon.main import COMMANDS, cli


def leaves():
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        below = command.commands if isinstance(command, click.Group) else {"": command}
        yield from ((f"{name} {verb}".strip(), found) for verb, found in below.items())


ALL = dict(leaves())


@pytest.mark.parametrize("words", [words for words in ALL if words != "run"])
def test_every_command_speaks_json_and_has_a_home(words):
    options = {option for parameter in ALL[words].params for option in parameter.opts}
    assert {"--json", "--home", "--debug"} <= options


def test_help_lists_every_command_and_loads_none_of_the_daemon():
    code = (
        "import sys; from peer_daemon.main import cli\n"
        "cli.main(['--help'], prog_name='axon-peer', standalone_mode=False)\n"
        "heavy = {'aiohttp', 'asyncio', 'numpy', 'torch', 'sqlite_utils', 'structlog', 'tomlkit'} & set(sys.modules)\n"
        "sys.exit(f'{heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2h", 7200), ("30m", 1800), ("90s", 90), ("1h30m", 5400), ("7d", 604800), ("1.5h", 5400), ("5 min", 300)],
)
def test_times_as_people_write_them(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "2", "2x", "-2h", "2h!", "1e9h", "nan"])
def test_no_times(text):
    assert seconds_of(text) is None


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GiB", 4096), ("4 gb", 3815), ("512", 512), ("512MB", 488), ("1.5G", 1536), ("1TiB", 1024**2), ("1 mb", 1)],
)
def test_sizes_as_people_write_them(text, size):
    assert mebibytes_of(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "4 KB", "nan", "1e3"])
def test_no_sizes(text):
    assert mebibytes_of(text) is None


def test_the_log_has_dates_and_no_colour_and_is_shown(home, type_in):
    home.mkdir()
    configure_logs(file=log_path(home))
    get_logger("here").info("peer", name="otter")
    (line,) = type_in("logs").splitlines()
    assert "peer" in line
    assert "name=otter" in line
    assert "\x1b" not in line
    assert line[:2] == "20"
    assert json.loads(type_in("logs", "--json")) == {"line": line}


def test_the_log_is_bounded(home):
    home.mkdir()
    configure_logs(file=log_path(home))
    handler = logging.getLogger().handlers[1]
    assert (handler.maxBytes, handler.backupCount) == (FILE_BYTES, OLD_FILES)


def test_a_log_that_cannot_be_written_ends_nothing(tmp_path, capsys):
    configure_logs(file=tmp_path / "nowhere" / "log")
    get_logger("here").warning("still here")
    told = capsys.readouterr().err
    assert "still here" in told
    assert "Traceback" not in told


def test_only_the_last_lines_are_shown_and_no_log_is_no_mistake(home, type_in):
    with pytest.raises(NotFound):
        type_in("logs")
    log_path(home).write_text("one\ntwo\nthree\n")
    assert type_in("logs", "-n", "2") == "two\nthree\n"
    assert last_lines(log_path(home), 0) == []


def test_why_a_peer_did_not_start_stands_in_its_log(home, type_in):
    home.mkdir()
    (home / "config.toml").write_text("[peer]\nhours = 3\n")
    with pytest.raises(SettingsError):
        type_in("run")
    assert "error AX-601" in type_in("logs")


def test_what_is_added_is_followed_also_into_a_new_file(tmp_path):
    path = tmp_path / "log"
    path.write_text("old\n")
    follower = Follower(path)
    assert list(follower.new_lines()) == []
    with path.open("a") as file:
        file.write("one\ntw")
    assert list(follower.new_lines()) == ["one"]
    with path.open("a") as file:
        file.write("o\nlast of the old\n")
    path.rename(tmp_path / "log.1")
    assert list(follower.new_lines()) == ["two", "last of the old"]
    path.write_text("first of the new\n")
    assert list(follower.new_lines()) == ["first of the new"]
    follower.close()


def test_the_page_is_shown_with_its_token(daemon, home, type_in):
    import msgspec

    daemon.sheet = msgspec.structs.replace(daemon.sheet, page="http://127.0.0.1:7072/")
    token = "0f" * 32
    (home / "page.token").write_text(f"http://127.0.0.1:7072/#token={token}\n")
    assert type_in("page") == f"http://127.0.0.1:7072/#token={token}\n"


def test_version():
    assert "axon-peer, version" in CliRunner().invoke(cli, ["--version"]).output
