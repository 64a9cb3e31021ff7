"""Wheels made in a test: good ones, and whatever a stranger may send in place of one."""

from __future__ import annotations

import base64
import hashlib
import struct
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
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


INFO = "gull-1.0.dist-info"
MANY = 45_000


def hostile_wheels() -> dict[str, tuple[Callable[[Path], Path], str]]:
    """By what is wrong with each: what makes it in an empty folder, and what its refusal says (a pattern)."""
    return {
        "a link": (lambda at: _with(at, _entry("gull/out", b"/etc/passwd", 0o120777)), r"'gull/out', which is a link"),
        "a link to a folder": (lambda at: _with(at, _entry("gull/up", b"../..", 0o120777)), r"which is a link"),
        "a device": (lambda at: _with(at, _entry("gull/null", b"", 0o020666)), r"'gull/null', which is no plain"),
        "a pipe": (lambda at: _with(at, _entry("gull/pipe", b"", 0o010666)), r"'gull/pipe', which is no plain"),
        "a way out": (
            lambda at: _with(at, _entry("gull/../../out.py", b"x")),
            r"'gull/../../out.py': it must not have",
        ),
        "an absolute path": (lambda at: _with(at, _entry("/etc/out.py", b"x")), r"'/etc/out.py': it must be"),
        "a way out of the data": (
            lambda at: _with(at, _entry("gull-1.0.data/purelib/../../../out.py", b"x")),
            r"it must not have empty parts, \. or \.\.",
        ),
        "a hash that does not fit": (lambda at: _recorded_wrong(at), r"hash / size of gull/__init__.py didn't match"),
        "a file that RECORD lacks": (
            lambda at: _with(at, _entry("gull/more.py", b"x"), record=False),
            r"not mentioned",
        ),
        "no RECORD": (lambda at: _without_record(at), r"Unable to retrieve `RECORD`"),
        "a file twice": (lambda at: _with(at, _entry("gull/__init__.py", b"x")), r"has 'gull/__init__.py' twice"),
        "a file that is a folder too": (
            lambda at: _with(at, _entry("gull/__init__.py/a", b"x")),
            r"a file and a folder",
        ),
        "a bomb": (lambda at: write_wheel(at, {"gull/zeros": bytes(50 * 2**20)}), r"unpacks to more than 10\.5 MB"),
        "a bomb of overlapping files": (_overlapping, r"unpacks to 3\.4 GB; a wheel may have"),
        "too many files": (lambda at: _with_names_of(at, MANY), r"has 45000 files; a wheel may have 40000"),
        "a million files": (
            lambda at: _with_names_of(at, 10**6),
            r"names its files in 62\.0 MB; a wheel may in 16\.8 MB",
        ),
        "too many folders": (
            lambda at: write_wheel(at, {f"{number:03}/{'a/' * 15}a": b"1" for number in range(640)}),
            r"has more than 10000 folders",
        ),
        "folders in folders without end": (lambda at: write_wheel(at, {"a/" * 99 + "a": b"1"}), r"16 folders deep"),
        "no zip": (lambda at: _written(at, b"MZ" + bytes(1000)), r"is no zip file"),
        "half of it": (lambda at: _written(at, _good(at).read_bytes()[:300]), r"is no zip file"),
        "a damaged one": (_damaged, r"is no zip file|didn't match RECORD|is no wheel"),
        "another package's name": (
            lambda at: write_wheel(at, {"lark.py": b""}, name="lark").rename(at / "gull-1.0-py3-none-any.whl"),
            r"doesn't match wheel filename",
        ),
        "another kind of wheel": (_of_version_9, r"Incompatible Wheel-Version"),
        "an encrypted file": (_encrypted, r"is no zip file that can be read: .*encrypted|is no zip file"),
    }


def _good(folder: Path) -> Path:
    return write_wheel(folder, {"gull/__init__.py": b"NAME = 'gull'\n"})


def _written(folder: Path, content: bytes) -> Path:
    wheel = folder / "gull-1.0-py3-none-any.whl"
    wheel.write_bytes(content)
    return wheel


def _entry(path: str, content: bytes, mode: int = 0o100644) -> tuple[zipfile.ZipInfo, bytes]:
    entry = zipfile.ZipInfo(path)
    entry.external_attr = mode << 16
    return entry, content


def _with(folder: Path, entry: tuple[zipfile.ZipInfo, bytes], *, record: bool = True) -> Path:
    """A good wheel with one entry more, which its RECORD names."""
    wheel = _good(folder)
    info, content = entry
    files = _content_of(wheel)
    if record:
        files[f"{INFO}/RECORD"] += f"{info.filename},{recorded(content)},{len(content)}\n".encode()
    with warnings.catch_warnings(), zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")
        for path, whole in files.items():
            archive.writestr(path, whole)
        archive.writestr(info, content)
    return wheel


def _content_of(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _changed(folder: Path, path: str, change: Callable[[bytes], bytes | None]) -> Path:
    """A good wheel with one file changed, or left out."""
    wheel = _good(folder)
    files = _content_of(wheel)
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            now = change(content) if name == path else content
            if now is not None:
                archive.writestr(name, now)
    return wheel


def _recorded_wrong(folder: Path) -> Path:
    return _changed(folder, "gull/__init__.py", lambda content: content.replace(b"gull", b"hawk"))


def _without_record(folder: Path) -> Path:
    return _changed(folder, f"{INFO}/RECORD", lambda content: None)


def _of_version_9(folder: Path) -> Path:
    wheel = _good(folder)
    files = _content_of(wheel)
    old = files[f"{INFO}/WHEEL"]
    new = old.replace(b"1.0", b"9.0", 1)
    files[f"{INFO}/WHEEL"] = new
    files[f"{INFO}/RECORD"] = files[f"{INFO}/RECORD"].replace(recorded(old).encode(), recorded(new).encode())
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return wheel


def _damaged(folder: Path) -> Path:
    wheel = write_wheel(folder, {"gull/__init__.py": bytes(range(256)) * 40})
    content = bytearray(wheel.read_bytes())
    content[80:90] = bytes(10)
    return _written(folder, bytes(content))


def _encrypted(folder: Path) -> Path:
    content = bytearray(_good(folder).read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return _written(folder, bytes(content))


def _overlapping(folder: Path) -> Path:
    """Many names for the same bytes: each is small, all together are not."""
    wheel = write_wheel(folder, {"gull/zeros": bytes(2**20)})
    content = wheel.read_bytes()
    return _written(folder, _with_names(content, 3200))


def _with_names_of(folder: Path, count: int) -> Path:
    """A small file that names so many."""
    return _written(folder, _with_names(_good(folder).read_bytes(), count))


def _with_names(content: bytes, count: int) -> bytes:
    """A zip file whose directory has `count` names for its first file."""
    start = content.index(b"PK\x01\x02")
    first = content[start:]
    length = struct.unpack_from("<H", first, 28)[0]
    head = bytearray(first[:46])
    names = [f"{number:0{length}}".encode() for number in range(count)]
    directory = b"".join(bytes(head) + name for name in names)
    at, whole = start, len(directory)
    end64 = struct.pack("<4sQHHLLQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, whole, at)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, at + whole, 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return content[:start] + directory + end64 + locator + end
