from __future__ import annotations

import os
import subprocess
import sys

import pytest

from axonp2p.sandbox.walls.drop_privileges import choose_user
from axonp2p.sandbox.walls.subordinate_uids import FIRST_USER, RANGE, arguments

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
ASK = """
import ctypes, os, sys
from axonp2p.sandbox.walls.drop_privileges import drop_privileges
drop_privileges(int(sys.argv[1]))
print(os.getresuid(), os.getresgid(), os.getgroups())
status = open("/proc/thread-self/status").read()
print({line.split()[1] for line in status.splitlines() if line.startswith("Cap")})
try:
    os.setuid(0)
except PermissionError:
    print("stays")
"""


def test_without_a_user_a_module_is_simply_run() -> None:
    assert arguments(None, ["worker", "7"]) == ["-s", "-P", "-m", "worker", "7"]


def test_with_a_user_it_is_run_after_becoming_that_user() -> None:
    assert arguments(5, ["worker", "7"]) == [
        "-s",
        "-P",
        "-m",
        "axonp2p.sandbox.walls.drop_privileges",
        "5",
        "worker",
        "7",
    ]


MULTIPLY = """
import os, resource, signal, sys
from axonp2p.sandbox.walls.drop_privileges import drop_privileges
drop_privileges(int(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_NPROC, (5, 5))
children = []
try:
    while len(children) < 20:
        children.append(os.fork())
        if not children[-1]:
            signal.pause()
except BlockingIOError:
    print(len(children))
for child in children:
    os.kill(child, signal.SIGKILL)
"""


@root_only
def test_two_workers_are_two_users() -> None:
    first, second = choose_user(), choose_user()
    assert first is not None
    assert second is not None
    assert first != second
    assert first & RANGE == second & RANGE == FIRST_USER


@root_only
def test_every_right_is_given_up_for_ever() -> None:
    told = subprocess.run([sys.executable, "-c", ASK, str(FIRST_USER)], capture_output=True, text=True, check=True)
    three = (FIRST_USER,) * 3
    assert told.stdout.splitlines() == [f"{three} {three} []", "{'0000000000000000'}", "stays"]


@root_only
def test_the_kernel_counts_its_processes_and_stops_it() -> None:
    user = str(choose_user())
    told = subprocess.run([sys.executable, "-c", MULTIPLY, user], capture_output=True, text=True, check=True)
    assert told.stdout == "4\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root can")
def test_who_is_no_root_needs_no_other_user() -> None:
    assert choose_user() is None
