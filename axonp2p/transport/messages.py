"""The messages that open a session, those of a link between two members of a job, and the one that says no anywhere."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from axonp2p.errors import AxonError, JobFailed, PeerMisbehaved, Refused, Unreachable, error_classes
from axonp2p.identity.certificate_bytes import FINGERPRINT_BYTES
from axonp2p.identity.peer_id import PeerId
from axonp2p.wire.codec import Message
from axonp2p.wire.envelope import Signable
from axonp2p.wire.quantities import Count, ProtocolVersion

NONCE_BYTES = 32
HANDSHAKE_LIMIT = 1024
CLOCK_TOLERANCE_S = 30
"""How far the clocks of two sides may differ, in seconds."""

LONGEST_TEXT = 2000
Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
Uuid = Annotated[str, msgspec.Meta(min_length=36, max_length=36)]
LANE_TOKEN_BYTES = 32
LaneToken = Annotated[bytes, msgspec.Meta(min_length=LANE_TOKEN_BYTES, max_length=LANE_TOKEN_BYTES)]
Nonce = Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
Fingerprint = Annotated[bytes, msgspec.Meta(min_length=FINGERPRINT_BYTES, max_length=FINGERPRINT_BYTES)]
# Labels that are empty or longer than 63 letters cannot be looked up at all.
HOST = r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63}){0,126}\.?)"
PORT = r"[0-9]{1,5}"
FINGERPRINT = r"[a-z2-7]{51}[aq]"
Address = Annotated[str, msgspec.Meta(max_length=255, pattern=rf"^{HOST}:{PORT}\Z")]
"""HOST:PORT; an IPv6 address stands in brackets."""
RelayAddress = Annotated[
    str,
    msgspec.Meta(max_length=330, pattern=rf"^https://{HOST}:{PORT}#{FINGERPRINT}\Z"),
]
"""https://HOST:PORT#FINGERPRINT of a tracker or a peer that relays."""
MOST_RELAYS = 2
"""How many relays a peer names."""
Relays = Annotated[list[RelayAddress], msgspec.Meta(max_length=MOST_RELAYS)]


class Challenge(Message, tag=True, frozen=True):
    """The listener's first word: sign this."""

    protocol: ProtocolVersion
    nonce: Nonce
    """Fresh for each session."""
    listener: PeerId
    """The listener's id."""


class Hello(Signable, frozen=True):
    """The caller's proof, bound to this one TLS endpoint: it fits no other listener and no other moment."""

    PURPOSE: ClassVar[str] = "axon/session/1"
    LIMIT: ClassVar[int] = 512

    protocol: ProtocolVersion
    nonce: Nonce
    """The challenge's."""
    listener: PeerId
    """The listener that the caller means to speak to."""
    certificate: Fingerprint


class Welcome(Message, tag=True, frozen=True):
    """The caller's key is proved; the conversation may begin."""


class Refusal(Message, tag=True, frozen=True):
    """No, with the reason: an error of the family, by its code (docs/errors.md)."""

    code: Annotated[str, msgspec.Meta(pattern=r"^AX-[0-9]{3}\Z")]
    """Of docs/errors.md."""
    message: Text
    """The event, in a sentence."""
    cause: Text = ""
    fix: Text = ""


class JoinMesh(Message, tag=True, frozen=True):
    """The first message of a link: I am in the job of that reservation, which is the listener's own."""

    reservation: Uuid
    """That of the listener's lease: members may have been reserved by different tokens."""


class MeshJoined(Message, tag=True, frozen=True):
    """You are on my roster. Each side says it once, the listener first; then only `Carry` travels."""

    received: Count
    """How many `Carry` of yours I have had, on all links of ours so far: go on after that one."""


class Carry(Message, tag=True, frozen=True):
    """The payload is from the caller's worker for the listener's worker, or the other way."""


class AskLane(Message, tag=True, frozen=True):
    """The dialler of a link has much to carry, and asks for a lane to the listener (`transport.lanes`)."""


class LaneOffer(Message, tag=True, frozen=True):
    """The dialler may open a lane to the listener's port by this token, once and soon."""

    token: LaneToken
    """Fresh random bytes, which the dialler shows on the new connection."""
    caller_sends: bool
    """Whether the lane was asked for (`AskLane`), or the listener has much to carry."""


class LaneBegins(Message, tag=True, frozen=True):
    """From here on what I carry comes on the lane. It keeps its place among the `Carry` of the session."""

    token: LaneToken
    """That of the lane's offer."""


class LaneTook(Message, tag=True, frozen=True):
    """So much has come on the lane; said now and then."""

    received: Count
    """As in `MeshJoined`."""


class LaneLeft(Message, tag=True, frozen=True):
    """I send no more on the lane: answer with `LaneEnded`."""


class LaneEnded(Message, tag=True, frozen=True):
    """The lane on which you sent is over: go on with `Carry` on the session. One answers each `LaneBegins`."""

    received: Count
    """As in `MeshJoined`: go on after that one."""


LaneWord = AskLane | LaneOffer | LaneBegins | LaneTook | LaneLeft | LaneEnded


class DialBack(Message, frozen=True):
    """Call me back at the IP address from which I ask: am I there for others?"""

    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    """Where the asker listens."""
    certificate: Fingerprint


class DialedBack(Message, frozen=True):
    """Whether the holder of that certificate answered there."""

    reached: bool
    """Whether it did."""


LinkReply = MeshJoined | Refusal

_TRAVELLING = (Refused, PeerMisbehaved, Unreachable, JobFailed)


def refusal_of(error: AxonError) -> Refusal:
    """The refusal for an error of ours; of a mistake in our own program no more than that it was one."""
    if type(error) is AxonError:
        error = Refused("an error inside; it is in the log there")
    message, cause, fix = (text[:LONGEST_TEXT] for text in (error.message, error.cause, error.fix))
    return Refusal(code=error.code, message=message, cause=cause, fix=fix)


def error_of(refusal: Refusal, said_by: str) -> AxonError:
    """The refusal as an error, naming who said it. A code that we do not know is a plain `Refused`."""
    kind = error_classes().get(refusal.code, Refused)
    if not issubclass(kind, _TRAVELLING):
        kind = Refused
    return kind(f"{said_by}: {refusal.message}", cause=refusal.cause, fix=refusal.fix)
