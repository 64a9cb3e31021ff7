"""Drivers work with the same peers as the client's other parts, on a loop whose time leaps."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.laboratory.home_links import HomeLinks
from tests.laboratory.virtual_loop import VirtualLoop
from tests.unit.client.conftest import *  # noqa: F403  fixtures


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> VirtualLoop:
    """One without threads."""

    async def at_once(work: Callable[..., Any], *args: Any) -> Any:
        return work(*args)

    monkeypatch.setattr(asyncio, "to_thread", at_once)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power cut is played
    return VirtualLoop(HomeLinks(1))
