"""From what bubblewrap said when it failed to what mends it. Decides only."""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.missing_modules import wrong_system

FIXED_BY = "; to fix it: "
"""In a sentence that says why there is no sandbox: after it comes the command, where one is known."""
LINUX_ONLY = f"jobs are walled in on Linux only{FIXED_BY}{wrong_system('a sandbox', 'Linux').fix}"
INSTALL = "sudo apt install bubblewrap (or: sudo dnf install bubblewrap)"

_APPARMOR = (
    r"printf 'abi <abi/4.0>,\nprofile bwrap /usr/bin/bwrap flags=(unconfined) {\n  userns,\n}\n'"
    " | sudo tee /etc/apparmor.d/bwrap && sudo systemctl reload apparmor"
)
_CONTAINER = (
    "allow user namespaces; in a container: docker run --security-opt seccomp=unconfined"
    " --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
)

_ROOT = (
    "run axon-peer as an ordinary user, or in a container: docker run --cap-add SYS_ADMIN --security-opt"
    " seccomp=unconfined --security-opt apparmor=unconfined"
)


@dataclass(frozen=True)
class Kernel:
    """Settings under /proc/sys that may forbid user namespaces; None where the kernel has no such setting."""

    unprivileged_userns_clone: int | None
    """kernel.unprivileged_userns_clone"""
    apparmor_restrict_unprivileged_userns: int | None
    """kernel.apparmor_restrict_unprivileged_userns"""
    max_user_namespaces: int | None
    """user.max_user_namespaces"""


def why_it_failed(said: str, kernel: Kernel, *, root: bool) -> str:
    """The reason why a try of bubblewrap failed that said `said`, and the command that mends it.

    `root`: it was tried by root, whose sandboxes have no user namespace.
    """
    last = said.strip().splitlines()[-1] if said.strip() else "bubblewrap failed without a word"
    if "Unknown option" in said:
        return f"bubblewrap is older than 0.8 ({last}){FIXED_BY}install a newer one: {INSTALL}"
    if root:
        reason = f"root may not make namespaces here ({last}){FIXED_BY}{_ROOT}" if _about_rights(said) else ""
        return reason or f"bubblewrap cannot build a sandbox: {last}"
    if kernel.max_user_namespaces == 0:
        return f"user namespaces are switched off ({last}){FIXED_BY}sudo sysctl -w user.max_user_namespaces=65536"
    if kernel.unprivileged_userns_clone == 0:
        return f"user namespaces are for root only ({last}){FIXED_BY}sudo sysctl -w kernel.unprivileged_userns_clone=1"
    if kernel.apparmor_restrict_unprivileged_userns == 1 and _about_rights(said):
        return f"AppArmor forbids user namespaces ({last}){FIXED_BY}{_APPARMOR}"
    if _about_rights(said):
        return f"user namespaces are not allowed here ({last}){FIXED_BY}{_CONTAINER}"
    return f"bubblewrap cannot build a sandbox: {last}"


def _about_rights(said: str) -> bool:
    return any(word in said for word in ("Operation not permitted", "Permission denied", "No permissions"))
