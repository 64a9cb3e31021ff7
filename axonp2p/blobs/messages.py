"""The messages that travel while a blob is passed on: the client gives, members tell what they have, ask, and give.

    client                                        peer
      | BlobManifest(name) + the manifest ------> |
      | <------------- BlobHave(pieces)           |  what it has kept of it from before: nothing, most often
      | BlobPiece(number) + bytes --------------> |  each piece to one peer, different ones to different peers
      | <------------- BlobGot(numbers)           |  now and then, wherever they came from
      | <------------- BlobLie(rank, number)      |  a member sent other bytes than the piece has
      | <------------- BlobReceived(name)         |  or BlobRefused(name, reason)
      | DropBlob(name) -------------------------> |  when it is needed no more
      | <------------- BlobDropped(name)          |

    member                                        member          (a link of the job's mesh, beside `Carry`)
      | BlobHave(pieces) -----------------------> |  when the link is up, or the blob is new here
      | <----- BlobHave(pieces, answers=true)     |  if it has the blob too; then each says `BlobGot`
      | BlobAsk(numbers) -----------------------> |
      | <------------- BlobPiece(number) + bytes  |  in the order asked; empty: it does not have it

Every message names the blob. The first one of a lease is the job's bundle; others are one file each, for the worker.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from axonp2p.transport.messages import LONGEST_TEXT
from axonp2p.wire.codec import Message
from axonp2p.wire.ranks import Rank

MOST_PIECES = 8192
MOST_ASKED = 32
MOST_TOLD = 1024
MOST_BLOBS = 256
"""That a peer holds for one lease at a time, the bundle not counted."""

Name = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Number = Annotated[int, msgspec.Meta(ge=0, lt=MOST_PIECES)]


class BlobManifest(Message, tag=True, frozen=True):
    """The files that are to come, as payload: an encoded `Manifest`."""

    blob: Name
    """The blob's name: SHA-256 of the payload."""


class BlobHave(Message, tag=True, frozen=True):
    """All pieces that the sender has. Those whose numbers it does not say it lacks."""

    blob: Name
    """The blob's name."""
    pieces: Annotated[bytes, msgspec.Meta(max_length=MOST_PIECES // 8)]
    """A bit for each piece, the first one the highest of the first byte."""
    answers: bool = False
    """Whether it answers the receiver's own: it is not answered then. Only members answer."""


class BlobGot(Message, tag=True, frozen=True):
    """The sender has these pieces as well, on its disk."""

    blob: Name
    """The blob's name."""
    numbers: Annotated[list[Number], msgspec.Meta(max_length=MOST_TOLD)]
    """Of the pieces."""
    from_members: Annotated[int, msgspec.Meta(ge=0, le=2**50)] = 0
    """Bytes of pieces that other members have sent it by now; only the client is told."""


class BlobAsk(Message, tag=True, frozen=True):
    """Send these pieces."""

    blob: Name
    """The blob's name."""
    numbers: Annotated[list[Number], msgspec.Meta(min_length=1, max_length=MOST_ASKED)]
    """In the order in which they are wanted."""


class BlobPiece(Message, tag=True, frozen=True):
    """A piece, as payload; an empty one says that the sender does not have it."""

    blob: Name
    """The blob's name."""
    number: Number
    """Of the piece."""


class BlobLie(Message, tag=True, frozen=True):
    """A member sent other bytes than the piece has. It is asked for nothing more; the piece comes from elsewhere."""

    blob: Name
    """The blob's name."""
    rank: Rank
    """Of the member that sent them."""
    number: Number
    """Of the piece."""


class BlobReceived(Message, tag=True, frozen=True):
    """Every piece of the blob is there and has its hash; the worker can see it."""

    blob: Name
    """The blob's name."""


class BlobRefused(Message, tag=True, frozen=True):
    """The peer has not taken a further blob, or has given it up; the lease continues."""

    blob: Name
    """The blob's name."""
    reason: Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
    """In a sentence."""


class DropBlob(Message, tag=True, frozen=True):
    """The worker needs this blob no more, which is not the bundle."""

    blob: Name
    """The blob's name."""


class BlobDropped(Message, tag=True, frozen=True):
    """The blob is gone, and nothing more is said of it until it is brought again."""

    blob: Name
    """The blob's name."""


BetweenHolders = BlobHave | BlobGot | BlobAsk | BlobPiece
"""The messages between members."""
