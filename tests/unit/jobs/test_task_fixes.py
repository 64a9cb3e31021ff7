"""A mistake of the task comes with what its author can do about it."""

from __future__ import annotations

import pytest

from axonp2p.jobs.task_fixes import task_fix

HEAD = 'Traceback (most recent call last):\n  File "task.py", line 3, in model\n    import it\n'


@pytest.mark.parametrize(
    ("last", "fix"),
    [
        ("ModuleNotFoundError: No module named 'mymodel'", 'data = ["mymodel.py"]'),
        ("ModuleNotFoundError: No module named 'sklearn.svm'", 'install = ["scikit-learn"]'),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'd.csv'", "the task works in the job's folder"),
        ("requests.exceptions.ConnectionError: HTTPSConnectionPool(host='x')", "a task has no network"),
        ("urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", "no network"),
        ("OSError: We couldn't connect to 'https://huggingface.co' to load the files", "no network"),
        ("OSError: [Errno 30] Read-only file system: 'checkpoint.pt'", "below tempfile.gettempdir()"),
        ("PermissionError: [Errno 13] Permission denied: 'log.txt'", "below tempfile.gettempdir()"),
        ("PermissionError: [Errno 13] Permission denied: '/job/log.txt'", "below tempfile.gettempdir()"),
        (
            "RuntimeError: [enforce fail at x.cc:747] . open file failed with strerror: Read-only file system",
            "tempfile",
        ),
        ("RuntimeError: [enforce fail at x.cc:747] . open file failed with strerror: Permission denied", "tempfile"),
        ("AssertionError: Torch not compiled with CUDA enabled", 'leave .to("cuda") and .cuda() out'),
        ("RuntimeError: Expected all tensors to be on the same device, but found ...", "register_buffer()"),
        ("PermissionError: [Errno 13] Permission denied: '/data/faces/1.png'", "correct task.py, line 3, in model()"),
        ("OSError: [Errno 28] No space left on device", "at most 256 MB"),
        ("RuntimeError: [enforce fail at inline_container.cc:664] . unexpected pos 64 vs 0", "at most 256 MB"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/out/deep/a.csv'", 'Path(os.environ["AXON_OUT"])'),
        ("The loss became nan in round 1, step 8.", "a smaller learning rate"),
        ("MemoryError", "a smaller batch"),
        ("RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried", "more memory"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.", "gpu-memory under [need]"),
        ("ValueError: no", "correct task.py, line 3, in model()"),
    ],
)
def test_the_last_line_leads_to_a_fix(last: str, fix: str) -> None:
    assert fix in task_fix(f"{HEAD}{last}\n\n")


@pytest.mark.parametrize("nothing", ["", "\n \n", "x" * 100_000, "ModuleNotFoundError: " * 5000])
def test_any_text_has_a_fix(nothing: str) -> None:
    assert task_fix(nothing) == "correct task.py"


def test_a_line_outside_of_any_function_is_named_by_its_number() -> None:
    raised = (
        'Traceback (most recent call last):\n  File "task.py", line 7, in <module>\n    1 / 0\nZeroDivisionError: no'
    )
    assert task_fix(raised) == "correct task.py, line 7"
    wrong = "  File \"task.py\", line 9\n    def loss(\n            ^\nSyntaxError: '(' was never closed"
    assert task_fix(wrong) == "correct task.py, line 9"
