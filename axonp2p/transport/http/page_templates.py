"""Templates of the pages that our programs serve: this loads Jinja2, so it is imported when somebody first looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def page_templates(folder: Path, filters: Mapping[str, Callable[..., object]]) -> Environment:
    """The templates in `folder`: what they are given is escaped, and a name that is not given is an error."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment
