"""The bubblewrap command for a worker. Decides only: the same facts give the same command.

Nothing of the machine is there but what is named here. Namespaces take away network, processes and shared memory of
others; the descriptors and variables not named here do not exist inside. A user who is not root has a user namespace
of their own; a worker of root's becomes a user whom nobody is (`drop_privileges`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from axonp2p.errors import SettingsError
from axonp2p.sandbox.gpu_access import OWN_MAPS, THREAD_NAMES, gpu_arguments, gpu_variables, library_path
from axonp2p.sandbox.limits import MIB, Limits
from axonp2p.sandbox.thread_names import thread_names_library
from axonp2p.sandbox.walls.subordinate_uids import arguments

NOBODY = 65534
FILES = {
    "/etc/passwd": b"axon:x:65534:65534::/tmp:/none\n",
    "/etc/group": b"axon:x:65534:\n",
    "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
}
"""Files made up for the sandbox, so that none of the machine's is shown."""
_NO_MAPS = b"00400000-00401000 r--p 00000000 00:00 0 \n"
_DEVICES = ("null", "full", "random", "urandom")
_DATA_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Environment:
    """The files bound into the sandbox, read-only, and how Python is found in it."""

    binds: tuple[tuple[str, str], ...]
    """(path outside, path inside)"""
    links: tuple[tuple[str, str], ...]
    """(target, path inside)"""
    python: str
    """The interpreter's path inside."""
    python_path: tuple[str, ...]
    library_path: str
    """Where the loader finds the interpreter's own library; "" where it knows."""
    hidden: tuple[str, ...] = ()
    """Folders inside, below what is bound, that are covered by an empty one."""


@dataclass(frozen=True)
class Descriptors:
    """Numbers of descriptors that bubblewrap itself reads and closes."""

    files: tuple[tuple[int, str], ...]
    """(descriptor, path inside) of the content of each file that is made up."""
    info: int
    """It writes there which process is the sandbox's first."""
    go: int
    """It waits for a byte there before it starts the worker."""
    filter: int
    """The filter of system calls, for itself and the worker."""


def bubblewrap_command(
    bubblewrap: str,
    environment: Environment,
    limits: Limits,
    *,
    job_folder: str,
    descriptors: Descriptors,
    run: list[str],
    user: int | None = None,
    data: Mapping[str, str] | None = None,
    blobs: str = "",
) -> list[str]:
    """The whole command; `run` are the module to be run inside and its arguments.

    `user` is the number that a worker of root's becomes, None where the daemon is not root.
    Each folder of `data` is shown, read-only, as /data/NAME, and the folder `blobs` as /blobs, which is empty without
    one. Raises `SettingsError` for a name that is none.
    """
    return [
        bubblewrap,
        *_namespaces(user),
        *("--hostname", "axon", "--die-with-parent"),
        # A new session, or the job could type into the terminal of the daemon.
        *("--new-session", "--clearenv"),
        *_folders(environment, limits, data or {}, descriptors),
        *("--ro-bind", job_folder, "/job"),
        *(("--ro-bind", blobs, "/blobs") if blobs else ("--perms", "0555", "--dir", "/blobs")),
        *_written_to(limits, tmp="0700" if user is None else "1777"),
        *(word for name, value in variables(environment, limits).items() for word in ("--setenv", name, value)),
        *("--info-fd", str(descriptors.info), "--block-fd", str(descriptors.go)),
        *("--seccomp", str(descriptors.filter)),
        "--",
        environment.python,
        *arguments(user, run),
    ]


def made_up(limits: Limits) -> dict[str, bytes]:
    """Path inside -> content of the files that this sandbox has, and the machine has not."""
    return FILES | ({THREAD_NAMES: thread_names_library(), OWN_MAPS: _NO_MAPS} if limits.gpu else {})


def _namespaces(user: int | None) -> list[str]:
    if user is None:
        return [
            # Said beside --unshare-all, which would go on without a user namespace where there is none to be had.
            *("--unshare-all", "--unshare-user", "--disable-userns"),
            *("--uid", str(NOBODY), "--gid", str(NOBODY), "--cap-drop", "ALL"),
        ]
    return [
        *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
        # The rights needed to become somebody else, and to give these rights up.
        *("--cap-drop", "ALL"),
        *(word for right in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{right}")),
    ]


def _folders(
    environment: Environment,
    limits: Limits,
    data: Mapping[str, str],
    descriptors: Descriptors,
) -> list[str]:
    words: list[str] = []
    for folder in _above(
        [*(inside for _, inside in (*environment.binds, *descriptors.files)), *(f"/data/{name}" for name in data)]
    ):
        words += ["--perms", "0755", "--dir", folder]
    for outside, inside in environment.binds:
        words += ["--ro-bind", outside, inside]
    for inside in environment.hidden:
        words += ["--size", "4096", "--perms", "0555", "--tmpfs", inside, "--remount-ro", inside]
    for target, inside in environment.links:
        words += ["--symlink", target, inside]
    for descriptor, path in descriptors.files:
        words += ["--perms", "0444", "--ro-bind-data", str(descriptor), path]
    words += ["--size", str(64 * 1024), "--tmpfs", "/dev"]
    for device in _DEVICES:
        words += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    words += gpu_arguments(limits.gpu) if limits.gpu else []
    for name, outside in data.items():
        if not _DATA_NAME.fullmatch(name):
            raise SettingsError(f"{name!r} is no name for data", fix="name it with letters, digits, dots, - and _")
        words += ["--ro-bind", outside, f"/data/{name}"]
    return words


def _written_to(limits: Limits, *, tmp: str) -> list[str]:
    return [
        # Shared memory is part of /tmp, so that one size holds both.
        *("--symlink", "/tmp", "/dev/shm"),  # noqa: S108
        # Where a job writes what shall come home: its worker makes the folder.
        *("--symlink", "/tmp/out", "/out"),  # noqa: S108
        *("--size", str(limits.scratch_mb * MIB), "--perms", tmp, "--tmpfs", "/tmp"),  # noqa: S108
        # The root and /dev are filesystems in memory too, without a size that holds.
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--chdir", "/tmp"),  # noqa: S108
    ]


def _above(paths: list[str]) -> list[str]:
    """The folders above these paths, uppermost first. bubblewrap would make them for root alone."""
    found = {str(folder) for path in paths for folder in PurePosixPath(path).parents}
    return sorted(found - {"/"})


def variables(environment: Environment, limits: Limits) -> dict[str, str]:
    """All environment variables of the worker."""
    cores = str(limits.cores)
    found = {
        "PATH": environment.python.rpartition("/")[0],
        "HOME": "/tmp",  # noqa: S108
        "TMPDIR": "/tmp",  # noqa: S108
        "USER": "axon",
        "LANG": "C.UTF-8",
        "PYTHONPATH": ":".join(environment.python_path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        # Two honest peers list a set of text in the same order.
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": cores,
        "MKL_NUM_THREADS": cores,
        # Threads that wait for work sleep instead of spinning on the lender's cores.
        "OMP_WAIT_POLICY": "PASSIVE",
        "GOMP_SPINCOUNT": "0",
        # There is no C++ compiler inside: what a task compiles runs as it is, in its steps and where they are redone.
        "TORCH_COMPILE_DISABLE": "1",
    }
    if environment.library_path:
        found["LD_LIBRARY_PATH"] = environment.library_path
    if limits.gpu:
        found |= gpu_variables(limits.gpu) | {"LD_LIBRARY_PATH": library_path(environment.library_path)}
    return found
