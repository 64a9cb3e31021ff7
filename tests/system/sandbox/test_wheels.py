"""Wheels of strangers, unpacked for real in a sandbox: good ones come out whole, each bad one is named and leaves
nothing."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from axonp2p.errors import AxonError, LimitReached, PeerMisbehaved
from axonp2p.sandbox.child import why_no_sandbox
from axonp2p.wheels.bundled import BundledWheel
from peer_daemon.wheels.unpacking import UnpackingFor
from peer_daemon.wheels.wheel_cache import WheelCache
from peer_daemon.wheels.wheel_policy import WheelPolicy
from tests.laboratory.wheel_files import INFO, hostile_wheels, write_wheel

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_no_sandbox()), reason="no bubblewrap here"),
]

MOST = 10 * 2**20
HOSTILE = hostile_wheels()
IN_THE_SANDBOX = (
    "a link",
    "a link to a folder",
    "a device",
    "a pipe",
    "a way out",
    "an absolute path",
    "a bomb",
    "a bomb of overlapping files",
    "too many files",
    "a million files",
    "a hash that does not fit",
    "no RECORD",
    "half of it",
)
"""`tests/unit/wheels` has all of them, without the sandbox. Those that Python runs at its start have a test below."""


class Peer:
    """A daemon's wheels and a job's folder."""

    def __init__(self, home: Path, most_bytes: int = 2**31):
        self.cache = WheelCache(home / "wheels", WheelPolicy("any"), most_bytes)
        self.bundle = home / "jobs" / "one" / "bundle"
        self.bundle.mkdir(parents=True)

    def brings(self, wheel: Path, sha256: str = "") -> BundledWheel:
        """The client has sent this wheel."""
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        bundled = BundledWheel(sha256 or found, wheel.name, wheel.stat().st_size)
        place = self.bundle / bundled.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(wheel.read_bytes())
        return bundled

    async def unpacks(self, *wheels: BundledWheel) -> None:
        await self.cache.place(wheels, self.bundle, UnpackingFor())


@pytest.fixture
def peer(tmp_path: Path) -> Peer:
    return Peer(tmp_path / "home")


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


async def test_a_wheel_comes_out_as_it_is_named_by_its_record(peer: Peer, tmp_path: Path) -> None:
    nested = write_wheel(tmp_path, {"inner.py": b"1"}, name="inner").read_bytes()
    modules = {"gull/__init__.py": b"A = 1\n", "gull/deep/er/data.bin": bytes(300_000), "gull/inner.whl": nested}
    more = {"gull-1.0.data/purelib/tern.py": b"B = 2\n", "gull-1.0.data/scripts/gull": b"#!python\n", "gull.pth": b"x"}
    wheel = peer.brings(write_wheel(tmp_path, modules | more))
    await peer.unpacks(wheel)
    found = files_below(peer.bundle / wheel.unpacked)
    assert {name: found[name] for name in modules} == modules  # a wheel within is a file like others
    assert found["tern.py"] == b"B = 2\n"
    assert "gull" not in found  # commands are not installed
    assert "gull/__init__.py" in found[f"{INFO}/RECORD"].decode()


async def test_no_right_comes_out_that_is_not_given(peer: Peer, tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, {"gull/tool": b"#!/bin/sh\n", "gull/__init__.py": b""})
    content = {}
    with zipfile.ZipFile(wheel) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, whole in content.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o106777 if name == "gull/tool" else 0o100666) << 16
            archive.writestr(entry, whole)
    bundled = peer.brings(wheel)
    await peer.unpacks(bundled)
    modes = {one.name: stat.S_IMODE(one.lstat().st_mode) for one in (peer.bundle / bundled.unpacked).rglob("*")}
    assert (modes["tool"], modes["__init__.py"], modes["gull"]) == (0o755, 0o644, 0o755)


@pytest.mark.parametrize("wrong", IN_THE_SANDBOX)
async def test_a_bad_wheel_is_named_and_leaves_nothing(wrong: str, tmp_path: Path) -> None:
    make, says = HOSTILE[wrong]
    peer = Peer(tmp_path / "home", MOST if wrong == "a bomb" else 2**31)
    made = tmp_path / "made"
    made.mkdir()
    wheel = peer.brings(make(made))
    before = files_below(tmp_path)
    with pytest.raises((PeerMisbehaved, LimitReached), match=says) as told:
        await peer.unpacks(wheel)
    assert told.value.message.startswith("gull 1.0 ")
    assert files_below(tmp_path) == before
    assert not (peer.bundle / wheel.unpacked).exists()


async def test_what_python_runs_at_its_start_is_run_by_no_process_but_the_jobs_own(sandboxed: Any) -> None:
    """A .pth file nowhere; sitecustomize in the programs that the job starts; and nobody replaces Axon's own modules."""
    ran = b"import os; os.environ['%s'] = 'ran'\n"
    wheels = {
        "gull": {"gull.pth": ran % b"A_PTH", "gull-nspkg.pth": ran % b"A_PTH", "gull.py": b""},
        "tern": {"sitecustomize.py": ran % b"A_CUSTOM", "usercustomize.py": ran % b"A_USER", "tern.py": b""},
        "auk": {"axonp2p/__init__.py": ran % b"AN_AXON", "axonp2p/wheels/unpacker.py": ran % b"AN_AXON"},
    }
    peer = Peer(sandboxed.job.parent / "home")
    peer.bundle = sandboxed.job
    brought = []
    for name, files in wheels.items():
        made = sandboxed.job.parent / f"made-{name}"
        made.mkdir()
        brought.append(peer.brings(write_wheel(made, files, name=name)))
    await peer.unpacks(*brought)
    task = """
        import json, os, subprocess, sys
        from pathlib import Path
        from axonp2p.wheels.import_path import use_wheels
        look = "import gull, tern, axonp2p, os, json;" + \\
            "print(json.dumps([axonp2p.__file__, *(n for n in os.environ if n.startswith('A'))]))"
        use_wheels(Path("/job"))
        import gull, tern
        here = [name for name in os.environ if name.startswith("A")]
        child = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True)
        answer([here, json.loads(child.stdout or json.dumps(child.stderr))])
    """
    here, started = await sandboxed.answer(task)
    assert here == []
    assert started == ["/axon/axonp2p/__init__.py", "A_CUSTOM", "A_USER"]
    assert not [name for name in os.environ if name.startswith(("A_", "AN_"))]


async def test_a_wheel_that_is_not_what_its_name_says_is_not_even_opened(peer: Peer, tmp_path: Path) -> None:
    wheel = peer.brings(write_wheel(tmp_path, {"gull.py": b""}), sha256="0" * 64)
    with pytest.raises(PeerMisbehaved, match=r"gull 1\.0 has the SHA-256 [0-9a-f]{16}\.\.\., its name says 0000"):
        await peer.unpacks(wheel)


async def test_jobs_share_what_is_kept_and_it_outlives_neither_limit_nor_crash(tmp_path: Path) -> None:
    one = Peer(tmp_path / "home", most_bytes=1_500_000)
    first = one.brings(write_wheel(tmp_path, {"gull/a": os.urandom(600_000)}))
    await one.unpacks(first)
    (tmp_path / "home" / "wheels" / "new-7").mkdir()  # what a crash left
    again = WheelCache(tmp_path / "home" / "wheels", WheelPolicy("any"), 1_500_000)
    other = tmp_path / "home" / "jobs" / "two"
    other.mkdir()
    assert again.lend_packed(first, other)
    assert (other / first.path).read_bytes() == (one.bundle / first.path).read_bytes()
    one.cache = again
    second = one.brings(write_wheel(tmp_path, {"tern/a": os.urandom(600_000)}, name="tern"))
    await one.unpacks(second)
    assert [path.name for path in (tmp_path / "home" / "wheels").iterdir()] == [second.sha256]
    assert (one.bundle / first.unpacked / "gull" / "a").stat().st_size == 600_000  # with the job it stays
    too_large = one.brings(write_wheel(tmp_path, {"auk/a": os.urandom(1_400_000)}, name="auk"))
    with pytest.raises(AxonError, match=r"auk 1\.0 unpacks to more than|have more than 1\.5 MB"):
        await one.unpacks(second, too_large)
