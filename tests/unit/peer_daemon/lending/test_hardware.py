from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys

import pytest

from peer_daemon.lending.hardware import distributions, look_at_machine
from peer_daemon.lending.offer import Distribution, LendingLimits

UNNEEDED = (
    *("torch", "numpy", "safetensors", "pandas", "scipy", "sqlite_utils", "cryptography"),
    *("zeroconf", "dbus_fast", "async_upnp_client", "pynvml", "multiprocessing", "http.server", "xml.etree", "pydoc"),
)
WISHES = LendingLimits(cores=1, memory_mb=0, disk_mb=512, slots=1)


@pytest.mark.slow
async def test_the_speed_is_measured_once(tmp_path):
    machine = await look_at_machine(tmp_path, WISHES)
    assert machine.cores >= 1
    assert machine.memory_mb > 100
    assert machine.gflops > 0.1
    assert list(machine.packages)[:3] == ["torch", "numpy", "safetensors"]
    cache = tmp_path / "hardware.json"
    known = json.loads(cache.read_text())
    cache.write_text(json.dumps({**known, "gflops": 12.34}))
    assert (await look_at_machine(tmp_path, WISHES)).gflops == 12.34
    cache.write_text("rubbish")
    assert (await look_at_machine(tmp_path, WISHES)).gflops != 12.34


def test_an_idle_daemon_loads_nothing_that_only_others_need(tmp_path):
    """Neither what is for workers, nor what is for the local network, where that is off; each takes megabytes."""
    code = f"""
import sys
from pathlib import Path
import peer_daemon.serving
from axonp2p.settings import PeerSettings
from peer_daemon.app import Peer
from peer_daemon.lending.hardware import look
look(Path({str(tmp_path)!r}))
Peer(Path({str(tmp_path)!r}), PeerSettings())
print([name for name in {UNNEEDED!r} if name in sys.modules])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize("strict", [False, True])
def test_a_package_is_known_by_the_head_of_its_metadata(tmp_path, monkeypatch, strict):
    """The description after it may say anything; older forms of metadata are read too; what has none names nothing."""
    described = "Name: heron\nVersion: 1.2\nRequires-Dist: torch\nRequires-Dist: lynx>=2; extra == 'fast'\n"
    for folder, name, text in (
        ("heron-1.2.dist-info", "METADATA", f"Metadata-Version: 2.1\n{described}\nName: other\nVersion: 9\n"),
        ("otter-0.3.egg-info", "PKG-INFO", "Metadata-Version: 1.0\nName: otter\nVersion: 0.3\n"),
        ("empty-1.dist-info", "METADATA", ""),
        ("broken-1.dist-info", "METADATA", "no metadata at all"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    (tmp_path / "lynx-0.1.egg-info").write_text("Metadata-Version: 1.0\nName: lynx\nVersion: 0.1\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    if strict:  # as importlib-metadata of PyPI answers, which looks for them all once a program has loaded it
        whole = importlib.metadata.Distribution.metadata
        monkeypatch.setattr(
            importlib.metadata.Distribution, "metadata", property(lambda one: _present(whole.fget(one)))
        )
    assert sorted(distributions(), key=lambda one: one.name) == [
        Distribution("heron", "1.2", ("torch", "lynx>=2; extra == 'fast'")),
        Distribution("lynx", "0.1", ()),
        Distribution("otter", "0.3", ()),
    ]


def _present(metadata):
    if not metadata.keys():
        raise importlib.metadata.PackageNotFoundError("No package metadata was found.")
    return metadata
