"""Packages of a job that is handed over: they travel in its bundle, and the host resolves nothing."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from packaging.version import Version

from axonp2p.client.packages.plan import PackagePlan, WheelSet
from axonp2p.client.run.job_packages import (
    JobPackages,
    _own,
    brought_plan,
    own_store,
    resolve_for_peers,
    was_brought,
    with_plan,
)
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import new_record
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.client.storage.kept_bundle import kept_bundle, spec_of
from axonp2p.errors import PackagesWrong, TrackerUnreachable
from axonp2p.jobs.bundle import Bundle, collect
from axonp2p.jobs.spec import read_spec
from axonp2p.kinds.train.section import TrainJob
from axonp2p.peers.capability import Capability
from axonp2p.wheels.platforms import own_platform
from tests.fakes import AtOnce, ManualClock
from tests.laboratory.wheel_files import write_wheel

JOB = "line-1a2b"
OFFER = Capability(
    cores=1, memory_mb=1, disk_mb=1, gflops=1, slots=1, free=1, python="3.11.2", packages={}, kinds=["train"],
    platform=str(own_platform()), wheels="any",
)  # fmt: skip


class NoTable:
    """Where nobody can be asked, this computer's own platform is resolved for."""

    async def find(self, *_: object, **__: object) -> Any:
        raise TrackerUnreachable("nobody is there")


MEANS: Any = SimpleNamespace(table=NoTable(), clock=ManualClock())
ALONE: Any = SimpleNamespace(clock=ManualClock())
"""Of a host that would ask nobody."""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job that brings one package, which pip knows from a folder."""
    index = tmp_path / "index"
    index.mkdir()
    write_wheel(index, {"gull.py": b"CRY = 'kee-ow'\n"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "task.py").write_text("class Task: ...\n")
    (folder / "job.toml").write_text('name = "line"\n[packages]\ninstall = ["gull"]\n')
    return folder


def written(home: Path, source: Path) -> tuple[JobFolder, TrainJob]:
    """The job as a client, or a host, has it on its disk."""
    spec = read_spec(source)
    assert isinstance(spec, TrainJob)
    folder = JobStore(home).create(new_record(JOB, spec, str(source), 1.0))
    return folder, spec


async def handed_over(home: Path, source: Path) -> Bundle:
    folder, spec = written(home, source)
    collect(source, spec).copy_to(folder.bundle)
    return await with_plan(MEANS, spec, folder, kept_bundle(folder, folder.read(), spec))


def at_host(home: Path, source: Path, bundle: Bundle) -> tuple[JobFolder, JobPackages]:
    folder, spec = written(home, source)
    bundle.copy_to(folder.bundle)
    record = folder.read()
    journal = JobJournal(folder, record, ManualClock(), lambda event: None, AtOnce())
    return folder, JobPackages(ALONE, journal, spec, kept_bundle(folder, record, spec_of(record)))


async def test_the_host_has_the_wheels_and_resolves_nothing(tmp_path: Path, source: Path) -> None:
    bundle = await handed_over(tmp_path / "laptop", source)
    names = [file.path for file in bundle.files]
    assert names[-1] == ".wheels/plan.json"
    assert names[-2].endswith("/gull-1.0-py3-none-any.whl")
    assert (tmp_path / "laptop" / "jobs" / JOB / "wheels.json").exists(), "for when the job comes back"
    folder, packages = at_host(tmp_path / "host", source, bundle)
    assert was_brought(folder)
    await packages.resolve()
    assert packages.why_not(OFFER) == ""
    other = msgspec.structs.replace(OFFER, platform="cp399-manylinux_2_36_x86_64")
    assert "for which no packages were resolved" in packages.why_not(other)
    (one,) = packages._plan.sets
    sent = packages._with(one)
    assert [file.path for file in sent.files] == names[:-1], "peers are sent no plan"


@pytest.mark.parametrize("honest", [True, False])
async def test_a_platform_for_which_there_is_nothing_ends_no_job_that_others_can_do(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, honest: bool
) -> None:
    def resolve(wanted: WheelSet, *_: Any) -> WheelSet:
        if "cp399" in wanted.platform:
            raise PackagesWrong("pip found nothing")
        return wanted

    async def offers(*_: Any) -> list[Capability]:
        odd = msgspec.structs.replace(OFFER, platform="cp399-manylinux_2_36_x86_64")
        return [odd, odd, *[OFFER] * honest]

    monkeypatch.setattr("axonp2p.client.packages.resolving.resolve", resolve)
    monkeypatch.setattr("axonp2p.client.run.job_packages._offers", offers)
    folder, spec = written(tmp_path / "laptop", source)
    asked = resolve_for_peers(MEANS, spec, folder.path, own_store(folder))
    if honest:
        assert [one.platform for one in (await asked).sets] == [OFFER.platform]
    else:
        with pytest.raises(PackagesWrong, match="nothing"):
            await asked


@pytest.mark.parametrize("harm", ["no wheel", "no plan", "elsewhere"])
async def test_what_is_not_whole_is_told_and_not_asked_of_an_index(tmp_path: Path, source: Path, harm: str) -> None:
    bundle = await handed_over(tmp_path / "laptop", source)
    folder, packages = at_host(tmp_path / "host", source, bundle)
    plan = msgspec.json.decode(brought_plan(folder).read_bytes(), type=PackagePlan)
    (wheel,) = plan.sets[0].wheels
    if harm == "no wheel":
        (folder.bundle / wheel.bundled.path).unlink()
    elif harm == "no plan":
        brought_plan(folder).write_bytes(b"{}x")
    else:
        text = brought_plan(folder).read_text()
        brought_plan(folder).write_text(text.replace(wheel.sha256, "../" * 10 + "etc"))
    with pytest.raises(PackagesWrong, match="not whole here"):
        await packages.resolve()


async def test_the_clients_own_bundle_was_brought_by_nobody(tmp_path: Path, source: Path) -> None:
    await handed_over(tmp_path / "laptop", source)
    assert not was_brought(JobFolder(tmp_path / "laptop" / "jobs" / JOB))


def test_a_client_without_torch_goes_by_what_axon_asks_of_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    found = _own()
    assert set(found) == {"torch", "numpy", "safetensors"}
    assert Version(found["torch"]) >= Version("2.13")
