"""What the daemon and the sandboxed worker say to each other on the channel.

Each is the header of a frame; payloads are carried, never read, by the daemon.
"""

from __future__ import annotations

from axonp2p.wire.codec import Message
from axonp2p.wire.ranks import Rank


class Start(Message, tag=True, frozen=True):
    """Daemon to worker, first: the limits that it must lay on itself before a stranger's code runs."""

    cores: int
    memory_mb: int
    processes: int
    """Processes, with some threads for each core."""
    open_files: int
    """Open at a time, by each process."""
    file_mb: int
    """The largest file that it may write, in MiB."""
    cpu_seconds: int = 0
    """0: no limit."""


class Started(Message, tag=True, frozen=True):
    """Worker to daemon: limits are set and the libraries are loaded."""


class BundleReady(Message, tag=True, frozen=True):
    """Daemon to worker: all files of the bundle lie in /job."""


class Control(Message, tag=True, frozen=True):
    """Either way: the payload is between the client's coordinator and the worker."""


class ToMember(Message, tag=True, frozen=True):
    """Worker to daemon: carry the payload to the member with that rank."""

    rank: Rank
    """Of the receiver."""


class FromMember(Message, tag=True, frozen=True):
    """Daemon to worker: the payload came from that rank, whose identity the daemon has checked."""

    rank: Rank
    """Of the sender."""


ToWorkerMessage = Start | BundleReady | Control | FromMember
FromWorkerMessage = Started | Control | ToMember
