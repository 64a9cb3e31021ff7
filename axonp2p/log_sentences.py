"""A log's line as a sentence, for a person at a terminal; files and programs get key=value or JSON (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axonp2p.console import printable

_MARKS = {"warning": "warning: ", "error": "error: ", "critical": "error: "}
_NO_FACTS = frozenset({"event", "level", "timestamp", "reason", "cause", "fix", "exception"})


def sentence_of(told: Mapping[str, Any], templates: Mapping[str, str]) -> str:
    """ "14:10:02  Announced to tracker 192.0.2.1:7070." `templates` has sentences by event, with {facts} in them.

    An event without a template is told with its facts in brackets. Strangers' words may be among them.
    """
    event = str(told.get("event", ""))
    known = {name: value for name, value in told.items() if name not in _NO_FACTS and value not in ("", None)}
    facts = {name: _one_line(value) for name, value in known.items()}
    template = templates.get(event)
    try:
        said = template.format_map(facts | {"reason": _reason(told)}) if template is not None else ""
    except (KeyError, IndexError, ValueError):
        said = ""
    if template is None or not said:
        said = event[:1].upper() + event[1:]
        if reason := _reason(told):
            said += f": {reason}"
        if facts:
            told_facts = [f"{name.replace('_', ' ')} {value}" for name, value in facts.items()]
            said += f" ({', '.join(told_facts)})"
    lines = [f"{told.get('timestamp', '')}  {_MARKS.get(str(told.get('level')), '')}{said}".strip()]
    if told.get("fix"):
        lines.append(f"          fix: {_one_line(told['fix'])}")
    if told.get("exception"):
        lines.append(str(told["exception"]))
    return printable("\n".join(lines))


def _reason(told: Mapping[str, Any]) -> str:
    reason, cause = (_one_line(told.get(name) or "") for name in ("reason", "cause"))
    return f"{reason} ({cause})" if reason and cause else reason or cause


def _one_line(value: object) -> str:
    return " ".join(str(value).split())
