"""What a program left that was killed when its job was over."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from axonp2p.client.leasing import release_leases
from axonp2p.client.leasing.hiring import GRACE_S
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.record import TrainRecord

OVER = 1000.0
"""When the job was."""


def left(home: Path, state: JobState) -> JobFolder:
    usual: dict[str, Any] = {"created": 900.0, "updated": OVER, "peers_wanted": 2, "rounds": 20}
    record = TrainRecord(
        id="line-11c0", name="line", folder="", spec={"kind": "train", "name": "x"}, state=state, **usual
    )
    folder = JobStore(home).create(record)
    folder.leases.write_text("[]")
    folder.states.mkdir()
    return folder


@pytest.mark.parametrize(
    ("state", "kept"), [(JobState.FINISHED, False), (JobState.CANCELLED, True), (JobState.PAUSED, True)]
)
async def test_peers_are_dialled_while_they_wait_and_states_go_once_the_weights_are_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: JobState, kept: bool
) -> None:
    released = []

    async def release(folder: JobFolder, *_: object) -> int:
        released.append(folder.path.name)
        return 0

    monkeypatch.setattr(release_leases, "release_leases", release)
    folder = left(tmp_path, state)
    await release_leases.finish_killed(JobStore(tmp_path), cast(Any, None), cast(Any, None), OVER + GRACE_S - 1)
    assert released == ["line-11c0"]
    assert folder.states.exists() == kept


async def test_nobody_is_dialled_once_all_peers_have_given_up(tmp_path: Path) -> None:
    folder = left(tmp_path, JobState.FINISHED)
    await release_leases.finish_killed(JobStore(tmp_path), cast(Any, None), cast(Any, None), OVER + GRACE_S + 1)
    assert not folder.leases.exists()
    assert not folder.states.exists()
