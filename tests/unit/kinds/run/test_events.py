"""The events of this kind are lines of JSON that name themselves, and are read back as what they were."""

from __future__ import annotations

import typing
from typing import Any

import msgspec

from axonp2p.kinds.run.events import CopyEnded, JobResults, RunEvent


def test_they_are_read_back_from_their_lines() -> None:
    kind: Any = RunEvent
    for event in (
        CopyEnded(at=7.0, index=3, attempt=1, peer="otter", code=-9, seconds=2.5, reason="timeout"),
        JobResults(job="sweep-1", folder="/home/x", copies=8, failed=[3, 5], seconds=9.0, credits={"otter": 0.5}),
    ):
        assert msgspec.json.decode(msgspec.json.encode(event), type=kind) == event


def test_each_has_a_name_of_its_own() -> None:
    tags = [kind.__struct_config__.tag for kind in typing.get_args(RunEvent)]
    assert len(set(tags)) == len(tags)
    assert "job_results" in tags
