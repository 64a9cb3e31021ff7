"""A mistake of the task comes with what its author can do about it."""

from __future__ import annotations

import pytest

from axonp2p.jobs.task_fixes import fix_of

HEAD = 'Traceback (most recent call last):\n  File "task.py", line 3, in model\n    import it\n'


@pytest.mark.parametrize(
    ("last", "fix"),
    [
        ("ModuleNotFoundError: No module named 'mymodel'", 'data = ["mymodel.py"]'),
        ("ModuleNotFoundError: No module named 'sklearn.svm'", 'packages = ["sklearn"]'),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'd.csv'", "Path(__file__).parent"),
        ("requests.exceptions.ConnectionError: HTTPSConnectionPool(host='x')", "a task has no network"),
        ("urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", "no network"),
        ("OSError: We couldn't connect to 'https://huggingface.co' to load the files", "no network"),
        ("OSError: [Errno 30] Read-only file system: 'checkpoint.pt'", "below /tmp"),
        ("OSError: [Errno 28] No space left on device", "at most 256 MB"),
        ("RuntimeError: [enforce fail at inline_container.cc:664] . unexpected pos 64 vs 0", "at most 256 MB"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/out/deep/a.csv'", 'Path(os.environ["AXON_OUT"])'),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory", "more memory"),
        ("The loss became nan in round 1, step 8.", "a smaller learning rate"),
        ("MemoryError", "a smaller batch"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "a smaller batch"),
        ("ValueError: no", "look into it"),
    ],
)
def test_the_last_line_leads_to_a_fix(last: str, fix: str) -> None:
    assert fix in fix_of(f"{HEAD}{last}\n\n", "look into it")


@pytest.mark.parametrize("nothing", ["", "\n \n", "x" * 100_000, "ModuleNotFoundError: " * 5000])
def test_any_text_has_a_fix(nothing: str) -> None:
    assert fix_of(nothing, "look into it") == "look into it"
