"""pip, as a process: wheels for another platform, brought from the index that this computer's owner has set (a door).

Wheels only: nothing is built, so no script of any package runs here. `explained` says what pip's complaint means.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from axonp2p.errors import AxonError, IndexUnreachable, PackagesWrong, VersionsClash
from axonp2p.wheels.platforms import Platform

LONGEST_S = 1800.0
_NO_LINE = re.compile(
    r"Temporary failure in name resolution|Name or service not known|NewConnectionError|Connection refused"
    r"|Network is unreachable|ReadTimeoutError|ConnectTimeoutError|Max retries exceeded|ProxyError|SSLError",
)
_NOT_FOUND = re.compile(r"No matching distribution found for (\S[^\n]*)")
_FROM_VERSIONS = re.compile(r"Could not find a version that satisfies the requirement [^\n]*\(from versions: ([^)]*)\)")
_CONFLICT = re.compile(r"The conflict is caused by:\n((?: {4}[^\n]*\n)+)")


def download(target: Platform, folder: Path, words: Sequence[str]) -> None:
    """`pip download` of wheels for `target` into `folder`; `words` name what. Blocks.

    Raises `PackagesWrong` for what there are no wheels of, `IndexUnreachable` without a line to the index.
    """
    command = [
        *(sys.executable, "-P", "-m", "pip", "download", "--disable-pip-version-check", "--no-input"),
        *("--progress-bar", "off", "--retries", "2", "--timeout", "20", "--only-binary", ":all:"),
        *("--implementation", "cp", "--python-version", f"3.{target.python}"),
        *(word for abi in (f"cp3{target.python}", "abi3", "none") for word in ("--abi", abi)),
        *(word for tag in target.system_tags for word in ("--platform", tag)),
        *("--dest", str(folder), *words),
    ]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LONGEST_S,
            env={**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise IndexUnreachable(f"pip brought no packages within {LONGEST_S / 60:g} min", fix="try again") from error
    if done.returncode:
        raise explained(done.stdout + done.stderr, target)


def explained(complaint: str, target: Platform) -> AxonError:
    """The error with its fix; `complaint` is all that pip said."""
    errors = [line.removeprefix("ERROR: ") for line in complaint.splitlines() if line.startswith("ERROR: ")]
    last = (errors or complaint.strip().splitlines() or ["it said nothing"])[-1][:500]
    if "No module named pip" in complaint:
        return PackagesWrong(
            "packages are brought by pip, and this Python has none", fix=f"{sys.executable} -m ensurepip --upgrade"
        )
    if _NO_LINE.search(complaint):
        return IndexUnreachable(
            "pip cannot reach the package index from this computer",
            cause=last,
            fix="try again with a network, or name an index of yours: PIP_INDEX_URL=https://..., PIP_FIND_LINKS=FOLDER",
        )
    if "ResolutionImpossible" in complaint:
        match = _CONFLICT.search(complaint)
        return VersionsClash(
            f"[packages] asks for versions that do not go together with what peers have ({target.title})",
            cause="; ".join(line.strip() for line in match[1].splitlines()) if match else last,
            fix="name other versions under [packages], or leave them open",
        )
    if match := _NOT_FOUND.search(complaint):
        versions = _FROM_VERSIONS.search(complaint)
        newest = ", ".join(versions[1].split(", ")[-6:]) if versions and versions[1] != "none" else ""
        others = f"the newest versions that have wheels there: {newest}" if newest else ""
        return PackagesWrong(
            f"there is no wheel of {match[1]} for {target.title}",
            cause=others or "packages travel as wheels only; nothing is built",
            fix="name a version that has wheels under [packages], or put its modules into data",
        )
    return PackagesWrong("pip cannot bring the packages", cause=last, fix="docs/jobs.md#packages")
