"""Events about blobs on their way: bytes that the client sends, bytes that peers pass on, and peers that do not."""

from __future__ import annotations

from typing import ClassVar

from axonp2p.client.events.event import Event
from axonp2p.wire.quantities import Count, Number


class PackagesResolved(Event, frozen=True):
    """The packages that the job brings along are here, as wheels for one platform of its peers."""

    platform: str
    """Python's minor version and the platform, as wheels have it."""
    wheels: list[str]
    """Name and version of each."""
    bytes: Count
    """Of all of them, packed. Peers that have one from an earlier job are not sent it again."""
    given: dict[str, str]
    """Packages that the peers have themselves and that these are compatible with: version by name."""
    seconds: Number
    """0 where they were resolved in an earlier life of the job."""


class BundleProgress(Event, frozen=True):
    """The bundle is on its way. Worth nothing a moment later, so it is not kept."""

    passing: ClassVar[bool] = True

    bytes: Count
    """Of pieces that the client has sent by now, to all peers together."""
    member_bytes: Count
    """Of pieces that peers have had from each other."""
    fraction: Number
    """Of all that all peers shall have."""


class BundleSent(Event, frozen=True):
    """Every peer has the task and its data, and its hashes fit."""

    peers: list[str]
    bytes: Count
    """Of pieces that the client sent, in all."""
    seconds: Number
    member_bytes: Count = 0
    """Of pieces that peers had from each other."""


class PieceWrong(Event, frozen=True):
    """A peer passed on other bytes than a piece of a blob has; the one it sent them to has it from elsewhere."""

    peer: str
    """The member that sent them."""
    told_by: str
    """The member that found them, by the piece's hash."""
    piece: Count
    """Its number in the blob, which is the bundle as a rule, from 0."""


class PeerHelped(Event, frozen=True):
    """No other peer passes a blob on to this one, so the client sends it the pieces itself."""

    peer: str
