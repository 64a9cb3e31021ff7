from __future__ import annotations

import pytest

from axonp2p.sandbox.walls.diagnosis import Kernel, why_it_failed

OPEN = Kernel(unprivileged_userns_clone=None, apparmor_restrict_unprivileged_userns=None, max_user_namespaces=9)
DENIED = "bwrap: setting up uid map: Permission denied\n"


@pytest.mark.parametrize(
    ("said", "kernel", "words"),
    [
        ("bwrap: Unknown option --disable-userns\n", OPEN, "apt install bubblewrap"),
        ("bwrap: No permissions to create new namespace\n", Kernel(0, None, 9), "kernel.unprivileged_userns_clone=1"),
        (DENIED, Kernel(None, 1, 9), "/etc/apparmor.d/bwrap"),
        ("bwrap: Creating new namespace failed\n", Kernel(1, None, 0), "user.max_user_namespaces=65536"),
        ("bwrap: Creating new namespace failed: Operation not permitted\n", OPEN, "docker run --security-opt"),
    ],
)
def test_each_known_failure_comes_with_the_command_that_mends_it(said: str, kernel: Kernel, words: str) -> None:
    reason = why_it_failed(said, kernel, root=False)
    assert words in reason
    assert said.strip() in reason


def test_settings_that_bind_only_ordinary_users_are_not_blamed_for_root() -> None:
    reason = why_it_failed(DENIED, Kernel(0, 1, 0), root=True)
    assert "sysctl" not in reason
    assert "as an ordinary user" in reason


def test_an_unknown_failure_is_told_as_it_was_said() -> None:
    assert "bwrap: Can't find source path" in why_it_failed("x\nbwrap: Can't find source path /y\n", OPEN, root=False)
    assert "without a word" in why_it_failed("", OPEN, root=False)
