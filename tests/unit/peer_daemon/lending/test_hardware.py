from __future__ import annotations

import json
import subprocess
import sys

from peer_daemon.lending.hardware import distributions, look_at_machine
from peer_daemon.lending.offer import Distribution, LendingLimits

UNNEEDED = (
    *("torch", "numpy", "safetensors", "pandas", "scipy", "sqlite_utils", "cryptography"),
    *("zeroconf", "dbus_fast", "async_upnp_client", "pynvml", "multiprocessing", "http.server", "xml.etree", "pydoc"),
)
WISHES = LendingLimits(cores=1, memory_mb=0, disk_mb=512, slots=1)


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


def test_a_package_is_known_by_the_head_of_its_metadata(tmp_path, monkeypatch):
    """The description after it may say anything; an older form of metadata is read too."""
    described = "Name: heron\nVersion: 1.2\nRequires-Dist: torch\nRequires-Dist: lynx>=2; extra == 'fast'\n"
    for folder, name, text in (
        ("heron-1.2.dist-info", "METADATA", f"Metadata-Version: 2.1\n{described}\nName: other\nVersion: 9\n"),
        ("otter-0.3.egg-info", "PKG-INFO", "Metadata-Version: 1.0\nName: otter\nVersion: 0.3\n"),
        ("empty-1.dist-info", "METADATA", ""),
        ("broken-1.dist-info", "METADATA", "no metadata at all"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert sorted(distributions(), key=lambda one: one.name) == [
        Distribution("heron", "1.2", ("torch", "lynx>=2; extra == 'fast'")),
        Distribution("otter", "0.3", ()),
    ]
