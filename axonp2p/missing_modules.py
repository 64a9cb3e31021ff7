"""Python modules that are not here, and the error for each; and the versions of the libraries that are."""

from __future__ import annotations

import sys

from axonp2p.errors import AxonError, NotInstalled, WrongSystem

_EXTRAS = {
    "torch": "torch",
    "safetensors": "torch",
    "sqlite_utils": "tracker",
    "prometheus_client": "tracker",
    "joblib": "joblib",
}
"""Which extra of axonp2p brings a module (setup.cfg)."""
_OF_UNIX = frozenset({"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"})
PAGE = "docs/windows-macos.md"
LIBRARIES = ("torch", "numpy", "safetensors", "aiohttp", "kademlia")
"""The libraries whose versions people are told."""


def error_of(module: str) -> AxonError | None:
    """The error for a module that cannot be imported; None for one that should be here: that is a bug."""
    if module in _EXTRAS:
        return not_installed([module], "this")
    if module in _OF_UNIX:
        return wrong_system("this command", "Linux and macOS")
    return None


def not_installed(modules: list[str], doing: str) -> NotInstalled:
    """The error where `doing` needs these modules of extras; `doing` is the subject of a sentence."""
    extras = ",".join(sorted({_EXTRAS[module] for module in modules}))
    return NotInstalled(
        f"{doing} needs {' and '.join(modules)}, which {'is' if len(modules) == 1 else 'are'} not installed here",
        fix=f'pip install "axonp2p[{extras}]"',
    )


def wrong_system(program: str, systems: str) -> WrongSystem:
    """The error of a program that runs on those systems only."""
    return WrongSystem(f"{program} runs on {systems} only", fix=f"on Windows use WSL2: {PAGE}")


def installed_versions(axon: str) -> dict[str, str]:
    """Of Python, of Axon (`axonp2p.__version__`) and of its libraries; empty for one that is missing. Blocks."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": sys.version.split()[0], "axon": axon}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found
