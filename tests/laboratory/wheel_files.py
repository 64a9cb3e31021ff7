"""Wheels made in a test: good ones, and whatever a stranger may send in place of one."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_WHEEL = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def recorded(content: bytes) -> str:
    """A hash as RECORD has it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def write_wheel(
    folder: Path,
    files: Mapping[str, bytes],
    *,
    name: str = "gull",
    version: str = "1.0",
    requires: Sequence[str] = (),
    tag: str = "py3-none-any",
) -> Path:
    """A good wheel with these files."""
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}".encode()
    whole = {**files, f"{info}/METADATA": metadata, f"{info}/WHEEL": _WHEEL}
    record = "".join(f"{path},{recorded(content)},{len(content)}\n" for path, content in whole.items())
    whole[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in whole.items():
            archive.writestr(path, content)
    return wheel
