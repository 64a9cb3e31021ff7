"""Looks at the machine: where the interpreter, its libraries and the packages lie that a worker needs.

Inside they lie at paths of their own, so that a job does not learn the name of the person whose home they are in.
"""

from __future__ import annotations

import os
import site
import stat
import sys
import sysconfig
from pathlib import Path

import axonp2p
from axonp2p.sandbox.walls.command_line import Environment

_LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64")
_FILES = ("/etc/ld.so.cache", "/proc/cpuinfo", "/proc/meminfo")
"""Single files: cpuinfo tells torch which instructions it may use; there is no other /proc."""


def find_environment() -> Environment:
    """The environment of the interpreter that runs now."""
    binds, links = _libraries()
    binds += [(file, file) for file in _FILES if os.path.exists(file)]
    python, library_path, interpreter = _interpreter(Path(sys.base_prefix), Path(sys.executable).resolve())
    binds += interpreter
    packages = [(folder, f"/packages/{number}") for number, folder in enumerate(_package_folders())]
    own = str(Path(axonp2p.__file__).resolve().parent)
    return Environment(
        binds=(*binds, *packages, (own, "/axon/axonp2p")),
        links=tuple(links),
        python=python,
        python_path=("/axon", *(inside for _, inside in packages)),
        library_path=library_path,
        hidden=tuple(_other_packages(binds)),
    )


def closed_to_others(environment: Environment) -> Path | None:
    """A file or folder of the environment that only some users may read; None when a worker of any user can work.

    Looks at what is bound and at what lies directly in it: an installation for one user alone is so from the top.
    """
    for outside, inside in environment.binds:
        if outside == inside:
            continue  # the system's own, which everybody may read
        top = Path(outside)
        paths: list[Path] = [top, *(top.iterdir() if top.is_dir() else [])]
        for path in paths:
            # Not links, whose mode means nothing.
            if path.exists() and not path.is_symlink() and not is_open_to_all(path):
                return path
    return None


def is_open_to_all(path: Path) -> bool:
    """Whether every user may read that file, or list that folder and go on below it."""
    wanted = stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0)
    return path.stat().st_mode & wanted == wanted


def _libraries() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Binds and links for the system's libraries.

    Where they have a folder for their kind of processor (Debian), only that: the rest of /usr/lib tells which programs
    the owner has.
    """
    binds: list[tuple[str, str]] = []
    links: list[tuple[str, str]] = []
    kind = sysconfig.get_config_var("MULTIARCH") or "."
    for folder in map(Path, _LIBRARIES):
        if folder.is_symlink():
            links.append((os.readlink(folder), str(folder)))
        elif (folder / kind).is_dir():
            # The loader has a fixed place, which on some kinds of processor is outside of that folder.
            binds += [(str(path), str(path)) for path in (folder / kind, *folder.glob("ld-*.so*"))]
        elif folder.is_dir():
            binds.append((str(folder), str(folder)))
    return binds, links


def _interpreter(prefix: Path, executable: Path) -> tuple[str, str, list[tuple[str, str]]]:
    """Path inside, library path and binds. Python finds its own library beside the executable's folder."""
    if prefix == Path("/usr"):
        # Its library may be in a folder that is bound already; twice does no harm.
        both = (str(executable), sysconfig.get_path("stdlib"))
        return str(executable), "", [(path, path) for path in both]
    python = f"/python/bin/{executable.name}"
    libraries = [
        (str((prefix / name).resolve()), f"/python/{name}") for name in ("lib", "lib64") if (prefix / name).is_dir()
    ]
    return python, "/python/lib", [(str(executable), python), *libraries]


def _package_folders() -> list[str]:
    """Folders with installed packages. Not `sys.path`: an editable install adds whole checkouts to it."""
    folders = site.getsitepackages()
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return [folder for folder in folders if os.path.isdir(folder)]


def _other_packages(binds: list[tuple[str, str]]) -> list[str]:
    """Inside, below `binds`: the interpreter's own folders of packages, those of a virtual environment's parent.

    The announced environment lies in /packages. Other installed packages are not the job's business, and their .pth
    files there would be run.
    """
    found = []
    for folder in map(Path, site.getsitepackages([sys.base_prefix])):
        for outside, inside in binds:
            if folder.is_dir() and folder.resolve().is_relative_to(outside):
                found.append(str(Path(inside, folder.resolve().relative_to(outside))))
    return list(dict.fromkeys(found))
