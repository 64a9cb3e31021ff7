"""The messages of the daemon and the sandboxed worker on the channel.

Each is the header of a frame; payloads are carried, never read, by the daemon.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from axonp2p.wire.codec import Message
from axonp2p.wire.quantities import Cores, Count
from axonp2p.wire.ranks import Rank

DevicePath = Annotated[str, msgspec.Meta(max_length=32, pattern=r"^/dev/nvidia(ctl|-uvm|[0-9]{1,3})\Z")]


class StandBy(Message, tag=True, frozen=True):
    """Daemon to worker, before its `Start` and instead of nothing: no lease is known yet, but load what takes long.

    The worker first closes itself off from files, as it does on `Start`, so its lease can have neither programs of the
    bundle that may be executed nor a GPU.
    """

    cores: Cores
    """That the lease will have."""


class StandsBy(Message, tag=True, frozen=True):
    """Worker to daemon, on `StandBy`: its sandbox is whole. Folders that it shows may have other names from now on."""


class Start(Message, tag=True, frozen=True):
    """Daemon to worker, first: the limits that it must lay on itself before a stranger's code runs."""

    cores: Cores
    memory_mb: Count
    processes: Count
    """Processes, with some threads for each core."""
    open_files: Count
    """Open at a time, by each process."""
    file_mb: Count
    """The largest file that it may write, in MiB."""
    cpu_seconds: Count = 0
    """0: no limit."""
    executes: bool = False
    """Whether programs of the bundle may be executed."""
    devices: Annotated[list[DevicePath], msgspec.Meta(max_length=3)] = []
    """Nodes of the GPU that it may use; none where it has no GPU."""


class Started(Message, tag=True, frozen=True):
    """Worker to daemon: limits are set and the libraries are loaded."""


class BundleReady(Message, tag=True, frozen=True):
    """Daemon to worker: all files of the bundle lie in /job."""


class Control(Message, tag=True, frozen=True):
    """Either way: the payload is between the client's coordinator and the worker."""

    bulk: bool = False
    """One of many large ones, in order among themselves (parts of files): all others may overtake it. A worker says
    it only with credit (`MayTell` without a rank)."""
    sign: bool = False
    """The worker's own: the daemon is to sign it, so that it can be shown later who said it."""


class ToMember(Message, tag=True, frozen=True):
    """Worker to daemon: carry the payload to the member with that rank. Only with credit (`MayTell`)."""

    rank: Rank
    """Of the receiver."""


class FromMember(Message, tag=True, frozen=True):
    """Daemon to worker: the payload came from that rank, whose identity the daemon has checked."""

    rank: Rank
    """Of the sender."""


class MayTell(Message, tag=True, frozen=True):
    """Daemon to worker: credit for so many more bytes of payload to one member.

    The worker keeps a sum for each rank: `bytes` are added, the length of the payload of each `ToMember` and 256 for
    the message itself are taken off (`wire.frame.FRAME_COST`). It says `ToMember` only while the sum is above 0, which
    may then fall below 0 by that one message; who says it at 0 or below, or without a payload, has broken the protocol
    and is ended. Messages that need no credit are read at a pace, which stops the worker in its channel.

    The first credit of a member comes when a roster names it, before any order that could need it; more comes as
    its link takes what was said. Credit never lapses: a new round, attempt or roster changes no sum. A member that
    is out of reach gets no more, and what is still said to it is dropped, as is what is said to a rank that never
    was on a roster. When it comes back with a later roster, its credit is made up to a first one.
    """

    rank: Rank | None
    """Of the receiver; None: the client's coordinator, for `Control(bulk=True)`. Its first credit comes after `Start`.
    Other `Control` needs none."""
    bytes: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    """Added to what that member may still be told."""


ToWorkerMessage = StandBy | Start | BundleReady | Control | FromMember | MayTell
FromWorkerMessage = StandsBy | Started | Control | ToMember
