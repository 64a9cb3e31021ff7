"""What an author can do about a mistake of the task, by the last line of its traceback. Pure."""

from __future__ import annotations

import re

_FIXES = (
    (
        r"ModuleNotFoundError: No module named '(?P<name>[\w.]{1,60})'",
        'a file of your own goes into data (data = ["{name}.py"]); a package into [packages] (install = ["{package}"]):'
        " so it comes to peers, and to axon check",
    ),
    (
        r"FileNotFoundError: .*",
        "name the file in data of job.toml, and open it beside task.py: Path(__file__).parent / NAME",
    ),
    (
        r"(?:\S*(?:ConnectionError|ConnectTimeout|URLError|gaierror|MaxRetryError|LocalEntryNotFoundError)\b.*"
        r"|.*(?:[Nn]ame resolution|Network is unreachable|couldn't connect to 'https?:).*)",
        "a task has no network: put what it would load into the job's folder, and name it in data of job.toml",
    ),
    (
        r"OSError: .*Read-only file system.*",
        "the job's folder is read-only at peers: write below /tmp, which goes when the job ends",
    ),
    (
        r"The loss became \S+ in round .*",
        "a smaller learning rate in optimizer(), a warm-up in schedule(), or clip-gradients = 1.0 under [train]",
    ),
    (r"(?:torch\.)?\S*(?:OutOfMemoryError|MemoryError)\b.*", "a smaller batch under [train], or a smaller model"),
)
_LONGEST_LINE = 1000
_PACKAGES = {"sklearn": "scikit-learn", "PIL": "pillow", "cv2": "opencv-python-headless", "yaml": "pyyaml"}
"""The packages of well-known modules that are named otherwise."""


def fix_of(traceback: str, otherwise: str) -> str:
    """The fix to show; `otherwise`: where the traceback does not say what is wrong."""
    last = next((line.strip() for line in reversed(traceback.splitlines()) if line.strip()), "")
    for pattern, fix in _FIXES:
        if found := re.fullmatch(pattern, last[:_LONGEST_LINE]):
            name = found.groupdict().get("name", "").partition(".")[0]
            return fix.replace("{name}", name).replace("{package}", _PACKAGES.get(name, name))
    return otherwise
