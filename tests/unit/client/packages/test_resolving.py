"""From job.toml to wheels on the disk, with pip and an index that is a folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
import zipfile
from pathlib import Path

import pytest

from axonp2p.client.packages import wheel_store
from axonp2p.client.packages.pip_download import explained
from axonp2p.client.packages.plan import WheelSet
from axonp2p.client.packages.resolving import resolve
from axonp2p.client.packages.wheel_metadata import read_metadata
from axonp2p.client.packages.wheel_store import WheelStore
from axonp2p.errors import IndexUnreachable, PackagesWrong, VersionsClash
from axonp2p.jobs.spec import PackagesSpec
from axonp2p.wheels import bundled
from axonp2p.wheels.bundled import ENTRY_BYTES
from axonp2p.wheels.platforms import own_platform, read_platform
from tests.laboratory.wheel_files import write_wheel

OWN = str(own_platform())
GIVEN = {"torch": "2.13.0+cpu", "numpy": "2.4.6", "safetensors": "0.8.0"}
TARGET = read_platform("cp311-manylinux_2_36_x86_64")
assert TARGET is not None


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def store(tmp_path: Path) -> WheelStore:
    return WheelStore(tmp_path / "wheels")


def resolved(store: WheelStore, *install: str, given: dict[str, str] = GIVEN, platform: str = OWN) -> WheelSet:
    return resolve(WheelSet(platform=platform, given=given), PackagesSpec(install=list(install)), Path(), store)


def test_what_it_needs_comes_too_and_what_peers_have_does_not(index: Path, store: WheelStore) -> None:
    write_wheel(index, {"tern.py": b""}, name="tern")
    write_wheel(index, {"gull.py": b""}, requires=["tern", "numpy>=2", "torch>=2"])
    found = resolved(store, "gull")
    assert [wheel.bundled.title for wheel in found.wheels] == ["gull 1.0", "tern 1.0"]
    assert found.given == {"numpy": "2.4.6", "torch": "2.13.0+cpu"}
    for wheel in found.wheels:
        assert store.has(wheel)
        assert hashlib.sha256(store.path(wheel).read_bytes()).hexdigest() == wheel.sha256


@pytest.mark.slow
def test_what_all_peers_have_is_not_sent_unless_another_version_is_asked_for(index: Path, store: WheelStore) -> None:
    write_wheel(index, {"gull.py": b""}, version="2.0")
    write_wheel(index, {"tern.py": b""}, name="tern", requires=["gull>=2"])
    has = GIVEN | {"gull": "1.5"}
    assert [one.bundled.title for one in resolved(store, "gull", given=has).wheels] == []
    assert [one.bundled.title for one in resolved(store, "gull>=2", given=has).wheels] == ["gull 2.0"]
    both = resolved(store, "tern", given=has)
    assert [one.bundled.title for one in both.wheels] == ["gull 2.0", "tern 1.0"]
    assert "gull" not in both.given


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip knows an index with pages, which have gull 1.0."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "simple"
    monkeypatch.setenv("PIP_INDEX_URL", folder.as_uri())
    (folder / "gull").mkdir(parents=True)
    wheel = write_wheel(folder / "gull", {"gull.py": b""})
    (folder / "gull" / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    return folder


@pytest.mark.slow
def test_the_next_job_that_asks_for_the_same_soon_starts_no_pip(pages: Path, store: WheelStore) -> None:
    first = resolved(store, "gull")
    shutil.rmtree(pages)
    assert resolved(store, "gull") == first
    for other in ({"install": "gull>=1"}, {"install": "gull", "given": GIVEN | {"numpy": "2.5.0"}}):
        with pytest.raises(PackagesWrong):
            resolved(store, other.pop("install"), **other)  # type: ignore[arg-type]
    (kept,) = store.folder.glob("*.json")
    old = time.time() - 601
    os.utime(kept, (old, old))
    with pytest.raises(PackagesWrong):
        resolved(store, "gull")


def test_what_was_chosen_is_chosen_again_when_a_wheel_of_it_is_gone(pages: Path, store: WheelStore) -> None:
    (wheel,) = resolved(store, "gull").wheels
    store.path(wheel).unlink()
    (again,) = resolved(store, "gull").wheels
    assert store.has(again)


@pytest.mark.slow
def test_a_wheel_that_was_made_again_in_a_folder_of_ones_own_is_seen_at_once(index: Path, store: WheelStore) -> None:
    write_wheel(index, {"gull.py": b"A = 1"})
    first = resolved(store, "gull")
    assert resolved(store, "gull") == first
    write_wheel(index, {"gull.py": b"A = 2"})
    assert resolved(store, "gull") != first


def test_a_wheel_for_another_platform_is_none(index: Path, store: WheelStore) -> None:
    write_wheel(index, {"gull.py": b""}, tag="cp311-cp311-win_amd64")
    with pytest.raises(PackagesWrong, match=r"there is no wheel of gull for Python"):
        resolved(store, "gull")


def test_a_version_that_does_not_go_with_what_peers_have_is_told(index: Path, store: WheelStore) -> None:
    write_wheel(index, {"gull.py": b""}, requires=["numpy<2"])
    with pytest.raises(VersionsClash, match="do not go together") as told:
        resolved(store, "gull")
    assert "numpy" in told.value.cause


def test_torch_is_never_sent(index: Path, store: WheelStore) -> None:
    write_wheel(index, {"torch.py": b""}, name="torch", version="2.0")
    write_wheel(index, {"gull.py": b""}, requires=["torch"])
    with pytest.raises(PackagesWrong, match="torch is never sent"):
        resolved(store, "gull", given={})


def test_what_another_platform_needs_besides_is_told(index: Path, store: WheelStore) -> None:
    write_wheel(index, {"gull.py": b""}, requires=['tern>=3; platform_machine == "aarch64"'])
    with pytest.raises(PackagesWrong, match=r"gull needs tern on Python 3\.11 on aarch64") as told:
        resolved(store, "gull", platform="cp311-manylinux_2_36_aarch64")
    assert told.value.fix == 'add "tern>=3" to install under [packages]'


def lock(folder: Path, *packages: str) -> PackagesSpec:
    text = 'lock-version = "1.0"\ncreated-by = "test"\n' + "".join(packages)
    (folder / "pylock.toml").write_text(text)
    return PackagesSpec(lock="pylock.toml")


def locked(name: str, version: str, wheel: Path | None = None) -> str:
    file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    url = wheel.as_uri() if wheel else f"https://index.invalid/{file}"
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest() if wheel else "0" * 64
    wheels = f'[[packages.wheels]]\nurl = "{url}"\nhashes = {{sha256 = "{sha256}"}}\n'
    return f'[[packages]]\nname = "{name}"\nversion = "{version}"\n{wheels}'


def test_a_lock_brings_what_it_names_and_no_more(index: Path, store: WheelStore, tmp_path: Path) -> None:
    gull = write_wheel(index, {"gull.py": b""}, requires=["tern"])
    spec = lock(tmp_path, locked("gull", "1.0", gull), locked("torch", "2.13.0"), locked("nvidia-nccl-cu13", "2.0"))
    found = resolve(WheelSet(platform=OWN, given=GIVEN), spec, tmp_path, store)
    assert [one.bundled.title for one in found.wheels] == ["gull 1.0"]
    assert found.given == {"torch": "2.13.0+cpu"}


@pytest.mark.parametrize(
    ("package", "says"),
    [
        (locked("torch", "2.12.0"), r"the lock has torch 2\.12\.0, and peers have 2\.13\.0\+cpu; it is never sent"),
        ("[[packages]]\nversion = 1\n", "pylock.toml is no lock file"),
    ],
)
def test_a_lock_that_cannot_be_had_is_told(package: str, says: str, store: WheelStore, tmp_path: Path) -> None:
    with pytest.raises(PackagesWrong, match=says):
        resolve(WheelSet(platform=OWN, given=GIVEN), lock(tmp_path, package), tmp_path, store)


def test_the_wheels_used_least_recently_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: WheelStore) -> None:
    wheels = [store.take(write_wheel(tmp_path, {"m.py": b"x"}, name=name)) for name in ("gull", "tern", "auk")]
    monkeypatch.setattr(wheel_store, "MOST_BYTES", wheels[0].size)
    store.trim({wheels[1].sha256})
    assert [store.has(wheel) for wheel in wheels] == [False, True, False]


NO_LINE = "WARNING: Retrying ... NewConnectionError(...)\nERROR: No matching distribution found for gull"


@pytest.mark.parametrize(
    ("complaint", "kind", "says"),
    [
        (NO_LINE, IndexUnreachable, "pip cannot reach the package index from this computer"),
        ("/usr/bin/python3: No module named pip", PackagesWrong, "this Python has none"),
        ("ERROR: No matching distribution found for gull==9", PackagesWrong, "there is no wheel of gull==9 for Python"),
        ("ERROR: something new", PackagesWrong, "pip cannot bring the packages"),
        ("", PackagesWrong, "pip cannot bring the packages"),
    ],
)
def test_what_pip_says_is_told_with_what_mends_it(complaint: str, kind: type[PackagesWrong], says: str) -> None:
    assert TARGET is not None
    error = explained(complaint, TARGET)
    assert isinstance(error, kind)
    assert says in error.message
    assert error.fix


def test_packages_over_a_limit_are_told_with_the_largest(
    index: Path, store: WheelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheel(index, {"gull.bin": bytes(range(256)) * 8})
    write_wheel(index, {"tern.py": b""}, name="tern")
    monkeypatch.setattr(bundled, "MOST_WHEELS", 1)
    with pytest.raises(PackagesWrong, match="too many or too large: 2 wheels; a job may bring 1") as told:
        resolved(store, "gull", "tern")
    assert "the largest is gull-1.0-py3-none-any.whl" in told.value.fix


def test_a_wheel_is_as_large_as_peers_count_it_and_one_that_they_would_not_write_is_told(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, {"gull/a/b.py": b"1"})
    with zipfile.ZipFile(wheel) as archive:
        files = archive.infolist()
    # gull, gull/a and the folder of the metadata
    assert read_metadata(wheel).unpacked_bytes == sum(one.file_size for one in files) + (len(files) + 3) * ENTRY_BYTES
    with pytest.raises(PackagesWrong, match="lies more than 16 folders deep"):
        read_metadata(write_wheel(tmp_path, {"a/" * 17 + "b.py": b"1"}))
