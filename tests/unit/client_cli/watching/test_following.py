from __future__ import annotations

import click
import pytest

from client_cli.watching.following import wish_of


@pytest.mark.parametrize(
    ("typed", "wish"), [("leave", "leave"), ("l", "leave"), (" C ", "cancel"), ("on", "on"), ("ON", "on")]
)
def test_a_wish_may_be_said_by_its_beginning(typed: str, wish: str) -> None:
    assert wish_of(typed) == wish


@pytest.mark.parametrize("typed", ["", "  ", "x", "leaves"])
def test_anything_else_is_asked_again(typed: str) -> None:
    with pytest.raises(click.BadParameter):
        wish_of(typed)
