"""Tokens that this tracker did not sign (pure): what makes one good enough for the receipts that name it.

A receipt counts because its client and its peer both signed it. The token says that the two had something to do with
each other: that a tracker, or the peer itself where no tracker lived, reserved the one for the other.
"""

from __future__ import annotations

from axonp2p.errors import BadSignature, Refused
from axonp2p.identity.peer_id import short
from axonp2p.reservation.token import LONGEST_S, Token
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed, open_signed

TOKEN_BYTES = Token.LIMIT + ENVELOPE_OVERHEAD


def open_foreign_token(data: bytes) -> tuple[Token, Signed[Token]]:
    """The token in an encoded envelope, and the envelope.

    Raises `BadSignature`, `MalformedMessage`, `MessageTooLarge`, and `Refused` when its issuer had no right to it.
    """
    signed: Signed[Token] = decode_as(data, Signed[Token], TOKEN_BYTES)
    token = open_signed(signed, Token)
    if token.issuer != signed.signer:
        raise BadSignature(f"a token of {short(token.issuer)} was signed by {short(signed.signer)}")
    if token.issuer == token.client:
        raise Refused("its client gave itself the token")
    if token.issuer in token.peers and token.peers != [token.issuer]:
        raise Refused("a peer may give a token for itself alone")
    if token.expires - token.not_before > LONGEST_S + CLOCK_TOLERANCE_S:
        raise Refused(f"its token is valid for more than {LONGEST_S} s")
    return token, signed
