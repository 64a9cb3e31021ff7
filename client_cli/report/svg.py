"""SVG as text: the one place where names and reasons of strangers become markup, so that nothing gets in unescaped."""

from __future__ import annotations

from html import escape
from typing import NewType

Svg = NewType("Svg", str)
"""Safe as it stands."""


def element(name: str, *inside: Svg, **attributes: str | float | None) -> Svg:
    """`<name ...>inside</name>`. In attributes' names `_` stands for `-` (`class_`: class); None is left out."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Svg(f"<{name}{told}>{''.join(inside)}</{name}>" if inside else f"<{name}{told}/>")


def words(text: str) -> Svg:
    """Text of anybody's."""
    return Svg(escape(text))


def label(text: str, **attributes: str | float | None) -> Svg:
    """`<text>`."""
    return element("text", words(text), **attributes)


def picture(*inside: Svg, said: str, **attributes: str | float | None) -> Svg:
    """A whole `<svg>`, with the sentence that stands for it where it cannot be seen."""
    return element("svg", *inside, role="img", aria_label=said, **attributes)


def percent(share: float) -> str:
    """0.5 -> 50%."""
    return f"{100 * share:.3f}%".replace(".000", "")


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else f"{value:.3f}".rstrip("0").rstrip(".")
