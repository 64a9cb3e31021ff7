"""config.toml and the AXON_* variables, checked: a mistake is named by its line and the nearest right name (pure).

Both are read against the structs of `settings`: a section is a struct, a struct within it a section within it. A number
that has a unit may be written with it: `memory-mb = "4 GiB"`.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec.structs import FieldInfo

from axonp2p.errors import SettingsError
from axonp2p.plain_text import AmountUnit, amount_of, example_of, rounded
from axonp2p.toml_text import line_of, nearest, nearest_section, not_toml

_DOCS = "docs/settings.md lists every setting"
_OF_KUBERNETES = re.compile(
    r"\w+_(SERVICE_HOST=|SERVICE_PORT(_\w+)?=|PORT(_\d+_[A-Z]+)?=\w+://|PORT_\d+_[A-Z]+_(PROTO|PORT|ADDR)=)"
)
"""NAME=VALUE of what it puts into every container of a namespace with a service called axon-tracker, say."""

Sections = dict[str, dict[str, FieldInfo]]
"""By name ("", "peer", "peer.in-use") and key."""


def checked_file(text: str, path: Path, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The settings of the file, every key and value of it looked at. Raises `SettingsError` for the first mistake."""
    try:
        plain = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        line, reason = not_toml(text, error)
        raise SettingsError(f"{path}, line {line}: not TOML: {reason}", fix=_DOCS) from error
    sections = _sections_of(kind)
    _check(plain, "", sections, text, path)
    return plain


def add_environment(
    plain: dict[str, Any],
    environment: Mapping[str, str],
    kind: type[msgspec.Struct],
    *,
    may_hold_spaces: Collection[str],
) -> None:
    """Put what the environment says into `plain`, over what config.toml says. Raises `SettingsError`."""
    sections = _sections_of(kind)
    known = {
        "_".join(["AXON", *section.replace("-", "_").split("."), field.name]).upper(): (section, field)
        for section, fields in sections.items()
        for field in fields.values()
        if section and not _is_section(field)
    }
    prefixes = tuple(f"AXON_{name}_".upper() for name in sections[""])
    for variable, text in sorted(environment.items()):
        if not variable.startswith(prefixes) or _OF_KUBERNETES.match(f"{variable}={text}"):
            continue
        if variable not in known:
            close = difflib.get_close_matches(variable, known, n=1)
            question = f" Did you mean {close[0]}?" if close else ""
            fix = f"unset {variable}    ({_DOCS}; a variable is AXON_SECTION_KEY)"
            raise SettingsError(f"{variable}: no setting has this name.{question}", fix=fix)
        section, field = known[variable]
        value = _number_of(_value_of(variable, text, field, spaces=field.name in may_hold_spaces), field)
        if wrong := _why_wrong(value, field):
            raise SettingsError(f'{variable} is "{text[:60]}": {wrong}', fix=f"{variable}={_plain_example(field)}")
        place = plain
        for name in section.split("."):
            place = place.setdefault(name, {})
        place[field.encode_name] = value


def value_of_words(kind: type[msgspec.Struct], key: str, words: Sequence[str], *, command: str) -> Any:
    """The TOML value of the `words` that a person gives `key` in a section. Raises `SettingsError`.

    A list has each word as an entry; all else is one word, numbers with their unit where they have one. `command` is
    what `key` and the words were typed behind.
    """
    field = setting_of(kind, key)
    is_list = field.type == list[str]
    if len(words) != 1 and not is_list:
        raise SettingsError(f"{key} has one value, not {len(words)}", fix=f"{command} {key} {words[0]}")
    value = list(words) if is_list else _number_of(words[0], field)
    if wrong := _why_wrong(value, field):
        raise SettingsError(f'{key} is "{words[0][:60]}": {wrong}', fix=f"{command} {key} {_plain_example(field)}")
    return msgspec.convert(value, field.type, strict=False)


def setting_of(kind: type[msgspec.Struct], key: str) -> FieldInfo:
    """The setting of that key in a section. Raises `SettingsError` with the nearest one."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind) if not _is_section(field)}
    if key not in fields:
        meant = nearest({"": fields}, "", key).partition(",")[0]
        question = f" Did you mean {meant}?" if meant else ""
        raise SettingsError(f"{key[:60]}: unknown key.{question}", fix=f"one of {', '.join(fields)}    ({_DOCS})")
    return fields[key]


def _sections_of(kind: type[msgspec.Struct], name: str = "") -> Sections:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    found: Sections = {name: fields}
    for key, field in fields.items():
        if _is_section(field):
            found |= _sections_of(field.type, f"{name}.{key}" if name else key)
    return found


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)


def _check(plain: dict[str, Any], section: str, sections: Sections, text: str, path: Path) -> None:
    for key, value in plain.items():
        line = line_of(text, section, key)
        where = f"{path}, line {line}: {key}" if line else f"{path}: {key}"
        field = sections[section].get(key)
        if field is None:
            is_section = not section and isinstance(value, dict)
            meant = nearest_section(sections, key) if is_section else nearest(sections, section, key)
            question, fix = (f" Did you mean {meant}?", f"write {meant}") if meant else ("", f"remove it; {_DOCS}")
            raise SettingsError(f"{where}: unknown {'section' if is_section else 'key'}.{question}", fix=fix)
        if _is_section(field):
            inner = f"{section}.{key}" if section else key
            if not isinstance(value, dict):
                raise SettingsError(f"{where}: expected a section, got {value!r:.60}", fix=f"[{inner}]")
            _check(value, inner, sections, text, path)
            continue
        plain[key] = _number_of(value, field)
        if wrong := _why_wrong(plain[key], field):
            raise SettingsError(f"{where}: {wrong}", fix=f"{key} = {_example(field)}    ({_DOCS})")


def _unit_of(field: FieldInfo) -> AmountUnit | None:
    """Of a number that people may write with its unit."""
    extras = [meta.extra for meta in get_args(field.type)[1:] if isinstance(meta, msgspec.Meta) and meta.extra]
    return extras[0]["unit"] if extras else None


def _number_of(value: Any, field: FieldInfo) -> Any:
    """The number that is meant by "4 GiB" where the setting has a unit; anything else as it is."""
    unit = _unit_of(field)
    amount = amount_of(value, unit) if unit and isinstance(value, str) else None
    if amount is None:
        return value
    return rounded(amount) if get_args(field.type)[0] is int else amount


def _why_wrong(value: Any, field: FieldInfo) -> str:
    """Empty for a value that the setting can have."""
    unit = _unit_of(field)
    if unit and isinstance(value, str):
        return f"expected a number of {unit}, or one with its unit, such as {example_of(unit)}"
    try:
        msgspec.convert(value, field.type, strict=False)
    except msgspec.ValidationError as error:
        plain = str(error).replace("`", "")
        return plain[:1].lower() + plain[1:]
    return ""


def _example(field: FieldInfo) -> str:
    """The default, as TOML writes it: for numbers, texts and lists as JSON does; of an amount, one with its unit."""
    if unit := _unit_of(field):
        return json.dumps(example_of(unit))
    default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return '{ NAME = "FOLDER" }' if isinstance(default, dict) else json.dumps(default)


def _plain_example(field: FieldInfo) -> str:
    example = _example(field)
    return "" if example in ("[]", '""') else example.strip('"')


def _value_of(variable: str, text: str, field: FieldInfo, *, spaces: bool) -> Any:
    """Entries of a list stand apart by spaces, or by semicolons where one may hold spaces; a table's are NAME=VALUE."""
    if field.type == list[str]:
        entries = text.split(";") if spaces else text.split()
        return [entry.strip() for entry in entries if entry.strip()]
    if field.type == dict[str, str]:
        pairs = [entry.strip().partition("=") for entry in text.split(";") if entry.strip()]
        if not all(name and value for name, _, value in pairs):
            raise SettingsError(f'{variable} is "{text}"', fix=f'{variable}="NAME=FOLDER; NAME=FOLDER"')
        return {name: value for name, _, value in pairs}
    return text
