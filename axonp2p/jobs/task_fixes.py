"""Fixes by the author for a mistake of the task, by its traceback, or about a limit. Pure."""

from __future__ import annotations

import re

_READ_ONLY = (
    "the job's folder is read-only: write into AXON_OUT what is to come home, and the rest below tempfile.gettempdir(),"
    " whose files go when the process ends"
)
_DISK = "/tmp and /out hold a quarter of the job's memory, at most 256 MB: write less, or ask for more memory"  # noqa: S108
_FIXES = (
    (
        r"ModuleNotFoundError: No module named '(?P<name>[\w.]{1,60})'",
        'a file of your own goes into data (data = ["{name}.py"]); a package into [packages] (install = ["{package}"]):'
        " so it reaches the peers, and axon check",
    ),
    (
        r"FileNotFoundError: .*'/out(?:/.*)?'",
        "make its folder first, with mkdir(parents=True, exist_ok=True); and write"
        ' Path(os.environ["AXON_OUT"]) for /out, which axon check has too',
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
        'leave .to("cuda") and .cuda() out: Axon puts the model and each batch on the card of a peer that lends one'
        " (gpu-memory under [need]), and trains on the processor where there is none",
    ),
    (r"(?:OSError: .*No space left on device.*|RuntimeError: .*(?:PytorchStreamWriter|unexpected pos).*)", _DISK),
    (
        r"The loss became \S+ in round .*",
        "a smaller learning rate in optimizer(), a warm-up in schedule(), or clip-gradients = 1.0 under [train]",
    ),
    (
        r"(?:torch\.)?\S*OutOfMemoryError: (?:CUDA|GPU) .*",
        "a smaller batch under [train] (or micro-batch, which leaves the steps the same), a smaller model, or more"
        " gpu-memory under [need]",
    ),
    (
        r".*(?:Expected all tensors to be on the same device|can't convert \S+ device type tensor to numpy).*",
        "make tensors where the model is: device = next(model.parameters()).device; what the model keeps belongs into"
        " register_buffer(). Batches come there by themselves",
    ),
    (
        r"(?:(?:torch\.)?\S*(?:OutOfMemoryError|MemoryError)\b.*|RuntimeError: .*an't allocate memory.*)",
        "a smaller batch under [train], a smaller model, or more memory under [need]",
    ),
)
_LIMITS = {
    "disk": _DISK,
    "gpu-memory": "ask for more of a GPU: gpu-memory under [need] in job.toml; or a smaller batch, or a smaller model",
    "output": "print less: of each peer's log 1 MiB is kept",
    "processes": "start fewer processes and threads: num_workers of a DataLoader, say",
    "cores": "start fewer busy threads, or ask for more cores under [need] in job.toml",
    "files": "leave fewer files in /tmp, and fewer of them open",
}
"""The fix where a worker was ended for a limit, by its name."""
_FRAME = re.compile(r'^ *File "(?P<file>[^"]{1,200})", line (?P<line>\d{1,9})(?:, in (?P<name>[\w<>]{1,100}))?', re.M)
_LONGEST_LINE = 1000
_PACKAGES = {"sklearn": "scikit-learn", "PIL": "pillow", "cv2": "opencv-python-headless", "yaml": "pyyaml"}
"""The packages of well-known modules that are named otherwise."""


def fix_of_limit(limit: str, memory_mb: int) -> str:
    """The fix to show where the sandbox's limit of that name was met by a job that asks for so many MiB of memory."""
    if limit == "memory":
        more = -(-2 * memory_mb // 1024)
        asks = f"under [need] in job.toml (it asks for {memory_mb} MiB)"
        return f'ask for more memory: memory = "{more} GiB" {asks}; or a smaller batch, or a smaller model'
    return _LIMITS.get(limit, "axon logs JOB shows what it printed; docs/safety.md has the limits")


def task_fix(traceback: str) -> str:
    """The fix to show: what helps against such an error, or the last of the author's own lines that raised it."""
    last = next((line.strip() for line in reversed(traceback.splitlines()) if line.strip()), "")
    for pattern, fix in _FIXES:
        if found := re.fullmatch(pattern, last[:_LONGEST_LINE]):
            name = found.groupdict().get("name", "").partition(".")[0]
            return fix.replace("{name}", name).replace("{package}", _PACKAGES.get(name, name))
    frames = list(_FRAME.finditer(traceback))
    if not frames:
        return "correct task.py"
    where = f"correct {frames[-1]['file']}, line {frames[-1]['line']}"
    name = frames[-1]["name"]
    return f"{where}, in {name}()" if name and name.isidentifier() else where
