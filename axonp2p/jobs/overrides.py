"""Keys of job.toml that a person gives beside it: `--set train.rounds=5`, `--peers 3`, keywords in Python. Pure.

They are checked as if they stood in the file, and put into the job's own copy of it. So whatever reads that later (a
job that is resumed, a host, a report) reads what was really asked for.
"""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from axonp2p.errors import JobFileWrong

_SHORT = {"peers": ("need", "peers"), "rounds": ("train", "rounds")}
"""Keywords in Python that stand for a key of a section."""

_LONGEST_SHOWN = 100


@dataclass(frozen=True)
class Override:
    """One of them."""

    section: str
    """Empty: above all sections."""
    key: str
    value: Any
    spelling: Callable[[Any], str]
    """How a person writes it, given a value."""

    @property
    def said(self) -> str:
        """How it was written; of a long one its beginning."""
        text = self.spelling(self.value)
        return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."

    def fix(self, line: str) -> str:
        """`line`, which mends it in job.toml, written as it was; or `line` itself when it sets another key."""
        try:
            return self.spelling(tomllib.loads(line)[self.key])
        except (ValueError, KeyError):
            return line


def set_words(words: Iterable[str]) -> list[Override]:
    """Those of `--set`: `train.rounds=5`, `need.memory=2 GB`, `name=sweep`; a value that is no TOML is text.

    Raises `JobFileWrong` naming the word that is none.
    """
    return [_of_word(word) for word in words]


def _of_word(word: str) -> Override:
    name, sign, text = word.partition("=")
    section, key = _split(name.strip())
    if not sign or not key:
        raise JobFileWrong(f"--set {word}: it sets no key", fix="--set SECTION.KEY=VALUE, such as --set train.rounds=5")

    def spelling(value: Any) -> str:
        return f"--set {shlex.quote(f'{name.strip()}={_as_word(value)}')}"

    return Override(section, key, _value_of(text.strip()), spelling)


def _split(name: str) -> tuple[str, str]:
    section, dot, key = name.partition(".")
    return (section, key) if dot else ("", name)


def _value_of(text: str) -> Any:
    try:
        plain = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    value = plain["value"]
    return value if len(plain) == 1 and isinstance(value, bool | int | float | str | list | dict) else text


def _as_word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def peers_option(peers: int | None) -> list[Override]:
    """That of `--peers N`; none when it was not given."""
    return [] if peers is None else [Override("need", "peers", peers, lambda value: f"--peers {value}")]


def keywords(given: Mapping[str, Any]) -> list[Override]:
    """Those of a call in Python: `peers=4`, `name="sweep"`, `need={"min_peers": 2}`. None means: not given.

    A mapping is a section. In keys an underscore means a dash.
    """
    found = []
    for word, value in given.items():
        if value is None:
            continue
        if word in _SHORT:
            section, key = _SHORT[word]
            found.append(Override(section, key, _plain(value), _as_keyword(word)))
        elif isinstance(value, Mapping):
            found += [Override(word, _dashes(key), _plain(inner), _as_entry(word, key)) for key, inner in value.items()]
        else:
            found.append(Override("", _dashes(word), _plain(value), _as_keyword(word)))
    return found


def _dashes(key: object) -> str:
    return str(key).replace("_", "-")


def _plain(value: Any) -> Any:
    if isinstance(value, PurePath):
        return value.as_posix()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _as_keyword(word: str) -> Callable[[Any], str]:
    return lambda value: f"{word}={value!r}"


def _as_entry(section: str, key: object) -> Callable[[Any], str]:
    return lambda value: f"{section}={{{key!r}: {value!r}}}"


def put_into(plain: Mapping[str, Any], overrides: Iterable[Override]) -> dict[str, Any]:
    """The content of job.toml, as TOML is read, with these in place of what it said of the same keys."""
    changed = dict(plain)
    for one in overrides:
        section = changed.get(one.section, {})
        if not one.section:
            changed[one.key] = one.value
        elif isinstance(section, Mapping):  # else the file is wrong there, and is told so
            changed[one.section] = {**section, one.key: one.value}
    return changed


def with_overrides(text: str, overrides: Sequence[Override]) -> str:
    """The text of a job.toml that was read without a mistake, with these put in; all else stays, comments too.

    Raises `JobFileWrong` for a file that is written too strangely.
    """
    if not overrides:
        return text
    import tomlkit  # it takes a while to load, and most jobs need it not

    document = tomlkit.parse(text)
    for one in overrides:
        if one.section and one.section not in document:
            document[one.section] = tomlkit.table()
        place: Any = document[one.section] if one.section else document
        place[one.key] = one.value
    changed = tomlkit.dumps(document)
    if tomllib.loads(changed) != put_into(tomllib.loads(text), overrides):
        said = ", ".join(one.said for one in overrides)
        raise JobFileWrong(f"{said} cannot be put into this job.toml", fix="write it there yourself")
    return changed
