"""Looks at the machine: where the interpreter, its libraries and the packages lie that a worker needs.

Inside they lie at paths of their own, so that a job does not learn the name of the person whose home they are in.
"""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path

import axonp2p
from axonp2p.sandbox.command_line import Environment

_LIBRARIES = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib32", "/lib64")
_FILES = ("/etc/ld.so.cache", "/proc/cpuinfo", "/proc/meminfo")
"""Single files: cpuinfo tells torch which instructions it may use; there is no other /proc."""


def find_environment() -> Environment:
    """The environment of the interpreter that runs now."""
    binds: list[tuple[str, str]] = []
    links: list[tuple[str, str]] = []
    for folder in _LIBRARIES:
        if os.path.islink(folder):
            links.append((os.readlink(folder), folder))
        elif os.path.isdir(folder):
            binds.append((folder, folder))
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
    )


def _interpreter(prefix: Path, executable: Path) -> tuple[str, str, list[tuple[str, str]]]:
    """Path inside, library path and binds. Python finds its own library beside the executable's folder."""
    if prefix == Path("/usr"):
        return str(executable), "", [(str(executable), str(executable))]
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
