"""Whatever the type of an event allows is told: a job's events may come from a host that nobody knows."""

from __future__ import annotations

import random
import typing
from typing import Any

import pytest

from axonp2p.client.events.events import Event, any_event, as_line, from_line
from client_cli.kinds import STORIES
from client_cli.report.folding import fold
from client_cli.text.event_text import line_of
from tests.laboratory.message_values import Values

KINDS: tuple[type[Event], ...] = typing.get_args(any_event())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_one_event(kind: Any) -> None:
    for seed in range(25):
        event = Values(random.Random(f"{kind.__name__} {seed}")).message(kind)
        assert from_line(as_line(event)) == event
        for job in STORIES:
            line_of(event, job)
            fold([event], job)


@pytest.mark.parametrize("seed", range(100))
def test_any_events_in_any_order(seed: int) -> None:
    values = Values(random.Random(seed))
    told = [values.message(values.chance.choice(KINDS)) for _ in range(20)]
    for job in STORIES:
        fold(told, job)
