"""What an author can do about a mistake of the task, by its traceback. Pure."""

from __future__ import annotations

import re

_READ_ONLY = "the job's folder is read-only: write below tempfile.gettempdir(), whose files go when the process ends"
_FIXES = (
    (
        r"ModuleNotFoundError: No module named '(?P<name>[\w.]{1,60})'",
        'a file of your own goes into data (data = ["{name}.py"]); a package into [need] (packages = ["{name}"])'
        " and, for axon check, into the Python of axon (pip install {name})",
    ),
    (
        r"FileNotFoundError: .*",
        "name the file in data of job.toml, and open it by that name: the task works in the job's folder",
    ),
    (
        r"(?:\S*(?:ConnectionError|ConnectTimeout|URLError|gaierror|MaxRetryError|LocalEntryNotFoundError)\b.*"
        r"|.*(?:[Nn]ame resolution|Network is unreachable|couldn't connect to 'https?:).*)",
        "a task has no network: put what it would load into the job's folder, and name it in data of job.toml",
    ),
    (r"(?:OSError|RuntimeError): .*Read-only file system.*", _READ_ONLY),
    (r"PermissionError: \[Errno 13\] Permission denied: '(?:/job/|/tmp/axon-check-|[^/'])[^']*'", _READ_ONLY),
    (r"RuntimeError: .*open file failed with strerror: Permission denied", _READ_ONLY),
    (
        r".*(?:Torch not compiled with CUDA enabled|Found no NVIDIA driver|No CUDA GPUs are available).*",
        'torch has no GPU there: device = "cuda" if torch.cuda.is_available() else "cpu"',
    ),
    (
        r"The loss became \S+ in round .*",
        "a smaller learning rate in optimizer(), a warm-up in schedule(), or clip-gradients = 1.0 under [train]",
    ),
    (
        r"(?:torch\.)?\S*(?:OutOfMemoryError|MemoryError)\b.*|RuntimeError: .*can't allocate memory.*",
        "more memory under [need], a smaller batch under [train], or a smaller model",
    ),
)
_FRAME = re.compile(r'^ *File "(?P<file>[^"]{1,200})", line (?P<line>\d{1,9})(?:, in (?P<name>[\w<>]{1,100}))?', re.M)
_LONGEST_LINE = 1000


def task_fix(traceback: str) -> str:
    """The fix to show: what helps against such an error, or the last of the author's own lines that raised it."""
    last = next((line.strip() for line in reversed(traceback.splitlines()) if line.strip()), "")
    for pattern, fix in _FIXES:
        if found := re.fullmatch(pattern, last[:_LONGEST_LINE]):
            name = found.groupdict().get("name", "").partition(".")[0]
            return fix.replace("{name}", name)
    frames = list(_FRAME.finditer(traceback))
    if not frames:
        return "mend task.py"
    where = f"mend {frames[-1]['file']}, line {frames[-1]['line']}"
    name = frames[-1]["name"]
    return f"{where}, in {name}()" if name and name.isidentifier() else where
