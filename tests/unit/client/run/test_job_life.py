"""For how long a job with too few peers waits for others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from axonp2p.client.run.job_life import JobLife
from axonp2p.client.storage.account import JobAccount
from axonp2p.client.storage.kept_bundle import kept_bundle, spec_of
from tests.fakes import AtOnce, ManualClock
from tests.unit.client.storage.test_damaged_folder import write_job


def life_of(home: Path, *, rounds: int, wait: int) -> tuple[JobLife, ManualClock]:
    folder, clock = write_job(home), ManualClock(100.0)
    record = msgspec.structs.replace(folder.read(), round=rounds)
    spec = spec_of(record)
    spec = msgspec.structs.replace(spec, need=msgspec.structs.replace(spec.need, wait=wait))
    account = JobAccount(folder, record, clock, lambda event: None, AtOnce())
    means: Any = SimpleNamespace(clock=clock)
    return JobLife(means, account, spec, kept_bundle(folder, record, spec)), clock


def test_before_the_first_round_only_lost_lines_are_waited_for_and_not_for_ever(tmp_path: Path) -> None:
    life, clock = life_of(tmp_path, rounds=0, wait=300)
    cut_off: Any = SimpleNamespace(cut_off={0: None})
    crashed: Any = SimpleNamespace(cut_off={})
    assert not life._may_wait(crashed)
    assert life._may_wait(cut_off)
    clock.time += 299
    assert life._may_wait(cut_off)
    clock.time += 2
    assert not life._may_wait(cut_off)
    life.leaving = True
    assert not life._may_wait(cut_off)


def test_after_a_round_every_loss_is_waited_for_unless_it_is_not_wished(tmp_path: Path) -> None:
    crashed: Any = SimpleNamespace(cut_off={})
    for name, wait in (("waits", 300), ("not", 0)):
        (tmp_path / name).mkdir()
        assert life_of(tmp_path / name, rounds=1, wait=wait)[0]._may_wait(crashed) is bool(wait)
