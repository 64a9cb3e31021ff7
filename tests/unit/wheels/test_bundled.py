from __future__ import annotations

import sys
from pathlib import Path

import pytest

from axonp2p.blobs.manifest import BlobFile
from axonp2p.errors import MalformedMessage, MessageTooLarge
from axonp2p.wheels.bundled import BundledWheel, named, wheels_among
from axonp2p.wheels.import_path import use_wheels, with_folders

SCIPY = "scipy-1.17.1-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"


def file(path: str, size: int = 10) -> BlobFile:
    return BlobFile(path=path, size=size, blake3=b"")


def place(number: int, name: str = "gull-1.0-py3-none-any.whl") -> str:
    return f".wheels/{number:064x}/{name}"


def test_wheels_are_found_among_the_files_of_a_bundle() -> None:
    found = wheels_among([file("task.py"), file(place(1, SCIPY), 35)])
    assert found == [BundledWheel(f"{1:064x}", SCIPY, 35)]
    assert found[0].title == "scipy 1.17.1"
    assert found[0].path == place(1, SCIPY)
    assert named("Ruamel.YAML-0.1-py3-none-any.whl") == ("ruamel-yaml", "0.1")


@pytest.mark.parametrize(
    "path",
    [
        ".wheels/a.whl",
        ".wheels/" + "a" * 63 + "/gull-1.0-py3-none-any.whl",
        place(1) + "/site/x.py",
        f".wheels/{1:064x}/site/numpy.py",
        place(1, "gull.whl"),
        place(1, "gull-1.0-py3-none-any.zip"),
        place(1, "torch-2.13.0-cp311-cp311-linux_x86_64.whl"),
        place(1, "nvidia_cublas_cu12-12.0-py3-none-any.whl"),
        place(1, "Numpy-2.0-py3-none-any.whl"),
    ],
)
def test_nothing_else_lies_in_their_folder(path: str) -> None:
    with pytest.raises(MalformedMessage):
        wheels_among([file(path)])


def test_they_are_bounded_together() -> None:
    with pytest.raises(MessageTooLarge, match="65 wheels"):
        wheels_among([file(place(number)) for number in range(65)])
    with pytest.raises(MessageTooLarge, match=r"a job may bring"):
        wheels_among([file(place(1), 2**29), file(place(2), 1)])
    with pytest.raises(MalformedMessage, match="twice"):
        wheels_among([file(place(1)), file(place(1, SCIPY))])


def test_modules_of_wheels_come_behind_axon_and_before_the_peers_packages() -> None:
    assert with_folders(["/axon", "/packages/0"], ["/job/.wheels/a"]) == ["/axon", "/job/.wheels/a", "/packages/0"]
    assert with_folders(["/usr"], ["/w"]) == ["/w", "/usr"]


def test_unpacked_wheels_are_imported_here_and_in_what_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    (tmp_path / "none").mkdir()
    use_wheels(tmp_path / "none")
    assert sys.path[0] != "/elsewhere"
    site = tmp_path / ".wheels" / ("b" * 64) / "site"
    site.mkdir(parents=True)
    (site / "module_of_a_wheel.py").write_text("NAME = 'gull'")
    for _ in range(2):
        use_wheels(tmp_path)
    import module_of_a_wheel  # type: ignore[import-not-found]

    assert module_of_a_wheel.NAME == "gull"
    assert sys.path.count(str(site)) == 1
    import os

    assert os.environ["PYTHONPATH"] == f"{site}{os.pathsep}/elsewhere"
