"""What an author can do about a mistake of the task, by its last line, or about a limit. Pure."""

from __future__ import annotations

import re

_DISK = "/tmp and /out hold a quarter of the job's memory, at most 256 MB: write less, or ask for more memory"  # noqa: S108
_FIXES = (
    (
        r"ModuleNotFoundError: No module named '(?P<name>[\w.]{1,60})'",
        'a file of your own goes into data (data = ["{name}.py"]); a package into [need] (packages = ["{name}"])'
        " and, for axon check, into the Python of axon (pip install {name})",
    ),
    (
        r"FileNotFoundError: .*'/out(?:/.*)?'",
        "make its folder first, with mkdir(parents=True, exist_ok=True); and write"
        ' Path(os.environ["AXON_OUT"]) for /out, which axon check has too',
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
        "the job's folder is read-only at peers: write into /out what is to come home, and the rest below /tmp",
    ),
    (r"(?:OSError: .*No space left on device.*|RuntimeError: .*(?:PytorchStreamWriter|unexpected pos).*)", _DISK),
    (
        r"The loss became \S+ in round .*",
        "a smaller learning rate in optimizer(), a warm-up in schedule(), or clip-gradients = 1.0 under [train]",
    ),
    (
        r"(?:(?:torch\.)?\S*(?:OutOfMemoryError|MemoryError)\b.*|RuntimeError: .*an't allocate memory.*)",
        "a smaller batch under [train], a smaller model, or more memory under [need]",
    ),
)
_LIMITS = {
    "disk": _DISK,
    "output": "print less: of each peer's log 1 MiB is kept",
    "processes": "start fewer processes and threads: num_workers of a DataLoader, say",
    "cores": "start fewer busy threads, or ask for more cores under [need] in job.toml",
    "files": "leave fewer files in /tmp, and fewer of them open",
}
"""What to do where a worker was ended for a limit, by its name."""
_LONGEST_LINE = 1000


def fix_of_limit(limit: str, memory_mb: int) -> str:
    """The fix to show where the sandbox's limit of that name was met by a job that asks for so many MiB of memory."""
    if limit == "memory":
        more = -(-2 * memory_mb // 1024)
        asks = f"under [need] in job.toml (it asks for {memory_mb} MiB)"
        return f'ask for more memory: memory = "{more} GB" {asks}; or a smaller batch, or a smaller model'
    return _LIMITS.get(limit, "axon logs JOB shows what it printed; docs/safety.md has the limits")


def fix_of(traceback: str, otherwise: str) -> str:
    """The fix to show; `otherwise`: where the traceback does not say what is wrong."""
    last = next((line.strip() for line in reversed(traceback.splitlines()) if line.strip()), "")
    for pattern, fix in _FIXES:
        if found := re.fullmatch(pattern, last[:_LONGEST_LINE]):
            name = found.groupdict().get("name", "").partition(".")[0]
            return fix.replace("{name}", name)
    return otherwise
