"""What travels while a bundle is passed on: the client gives, members tell what they have, ask, and give.

    client                                        peer
      | BlobManifest(name) + the manifest ------> |
      | <------------- BlobHave(pieces)           |  what it has kept of it from before: nothing, most often
      | BlobPiece(number) + bytes --------------> |  each piece to one peer, different ones to different peers
      | <------------- BlobGot(numbers)           |  now and then, wherever they came from
      | <------------- BlobLie(rank, number)      |  a member sent other bytes than the piece has
      | <------------- BundleReceived             |

    member                                        member          (a link of the job's mesh, beside `Carry`)
      | BlobHave(pieces) <----------------------> |  when the link is up; then each says `BlobGot`
      | BlobAsk(numbers) -----------------------> |
      | <------------- BlobPiece(number) + bytes  |  in the order asked; empty: it does not have it

Every message names the blob, so that one of another bundle is not taken for one of this.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from axonp2p.wire.codec import Message
from axonp2p.wire.ranks import Rank

MOST_PIECES = 8192
MOST_ASKED = 32
MOST_TOLD = 1024

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


BetweenHolders = BlobHave | BlobGot | BlobAsk | BlobPiece
"""What members say to each other."""
