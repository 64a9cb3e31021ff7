"""The commands that change this machine's networks, and why they may not be had."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

_TOOLS = {"ip": "iproute2", "tc": "iproute2", "nft": "nftables"}
_TRIAL = "axonlab-trial"


def why_not() -> str:
    """Why the laboratory can't be built here; empty when it can."""
    if os.geteuid() != 0:
        return "the laboratory's network namespaces need root"
    for tool, package in _TOOLS.items():
        if shutil.which(tool) is None:
            return f"the {tool} command is missing (apt install {package})"
    if not Path("/dev/net/tun").exists():
        return "this machine has no /dev/net/tun"
    name = f"{_TRIAL}-{os.getpid()}"
    try:
        run("ip", "netns", "add", name)
        links(name, "link add ifb0 type ifb", "link set ifb0 up")
        add = ["tc", "-n", name, "qdisc", "add", "dev", "ifb0"]
        run(*add, "root", "tbf", "rate", "1mbit", "burst", "3000", "latency", "1ms")
        run(*add, "ingress")
        run("ip", "netns", "exec", name, "nft", "add", "table", "ip", "trial")
    except subprocess.CalledProcessError as error:
        return f"this machine's kernel can't do it: {' '.join(error.cmd)}: {error.stderr.strip()}"
    finally:
        run("ip", "netns", "delete", name, check=False)
    return ""


def run(*words: str, feed: str | None = None, check: bool = True) -> str:
    """What a command prints. Raises `CalledProcessError`."""
    done = subprocess.run(words, input=feed, capture_output=True, text=True, check=check, timeout=60)
    return done.stdout


def links(namespace: str, *lines: str) -> None:
    """Commands of `ip`, one a line, inside a namespace."""
    run("ip", "-n", namespace, "-batch", "-", feed="\n".join(lines))


def inside(namespace: str) -> list[str]:
    """What stands before a command line that runs in there."""
    return ["ip", "netns", "exec", namespace]


def namespaces() -> list[str]:
    """Of the whole machine, by name."""
    folder = Path("/run/netns")
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def remove(names: Sequence[str]) -> None:
    """Namespaces, and whatever still runs in them."""
    for name in names:
        for pid in run("ip", "netns", "pids", name, check=False).split():
            try:
                os.kill(int(pid), 9)
            except ProcessLookupError:
                continue
    for name in names:
        run("ip", "netns", "delete", name, check=False)
