"""Each kind of job has its story."""

from __future__ import annotations

import dataclasses

from axonp2p.jobs.kinds import KINDS, load
from client_cli.job_template import FILES
from client_cli.kinds import STORIES


def test_each_kind_has_a_story_a_template_and_parts_that_are_there() -> None:
    assert STORIES.keys() == KINDS.keys() == FILES.keys()
    for story in STORIES.values():
        assert all(load(part) for part in dataclasses.astuple(story))
