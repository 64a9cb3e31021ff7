"""Runs a program of this checkout as root or as an ordinary user, who may read nothing of root's but that."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
AS_ROOT, AS_ANYBODY = "as root", "as an ordinary user"
_USER = 54321
"""Nobody is that."""
_OTHERS_MAY_ENTER = 0o001


def run_as(who: str, module: str, timeout_s: float, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m MODULE WORDS` from the checkout; its environment is empty but for what a login has."""
    # Not pytest's own folder, which other users may not enter.
    with tempfile.TemporaryDirectory(prefix="axon-user-") as name:
        home = Path(name)
        plain = {"HOME": name, "TMPDIR": name, "PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", module, *words]
        if who == AS_ANYBODY and os.geteuid() == 0:
            os.chown(home, _USER, _USER)
            command = _as_anybody(command)
        return subprocess.run(
            command, env=plain, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False
        )


def why_not(who: str) -> str:
    """Why nothing can be run as them here; "" when it can."""
    if who == AS_ROOT and os.geteuid() != 0:
        return "this is an ordinary user, and it takes root to be root"
    if who == AS_ANYBODY and os.geteuid() == 0:
        tried = subprocess.run(_as_anybody([sys.executable, "-c", "import axonp2p"]), capture_output=True, text=True)
        if tried.returncode:
            return f"no other user can run this interpreter: {tried.stderr.strip()[-300:]}"
    return ""


def _as_anybody(command: list[str]) -> list[str]:
    """In mounts of its own, where only what the interpreter needs is left of folders that others may not enter."""
    needed = sorted({Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), ROOT})
    closed = {path: folder for path in needed if (folder := _closed_above(path))}
    lines = ["set -e", "kept=$(mktemp -d)"]
    for number, path in enumerate(closed):
        lines += [f"mkdir $kept/{number}", f"mount --bind {shlex.quote(str(path))} $kept/{number}"]
    for folder in sorted(set(closed.values())):
        lines.append(f"mount -t tmpfs -o mode=0755 tmpfs {shlex.quote(str(folder))}")
    for number, path in enumerate(closed):
        lines += [f"mkdir -p {shlex.quote(str(path))}", f"mount --bind $kept/{number} {shlex.quote(str(path))}"]
    if closed:
        lines += ["umount $kept/*", "rmdir $kept/* $kept"]
    else:
        lines.append("rmdir $kept")
    words = ["setpriv", "--reuid", str(_USER), "--regid", str(_USER), "--clear-groups", *command]
    return ["unshare", "--mount", "sh", "-c", "\n".join([*lines, f"exec {shlex.join(words)}"])]


def _closed_above(path: Path) -> Path | None:
    """The uppermost folder on the way to `path` that others may not enter."""
    way = [*reversed(path.parents), path]
    return next((folder for folder in way if not folder.stat().st_mode & _OTHERS_MAY_ENTER), None)
