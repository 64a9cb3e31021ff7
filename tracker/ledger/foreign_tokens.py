"""Tokens that this tracker did not sign: what makes one good enough for the receipts that name it.

A receipt counts because its client and its peer both signed it. The token says that the two had something to do with
each other: that a tracker, or the peer itself where no tracker lived, reserved the one for the other.
"""

from __future__ import annotations

from contextlib import suppress

import sqlite_utils

from axonp2p.errors import BadSignature, PeerMisbehaved, Refused
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.receipt import Receipt
from axonp2p.reservation.token import LONGEST_S, Token
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signed, open_signed

MOST_LOOKED_AT = 16
"""Stored tokens of one UUID and client."""
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


def token_of(database: sqlite_utils.Database, receipt: Receipt) -> bytes:
    """The encoded envelope of the token that a stored receipt stands on; empty when there is none."""
    return token_for(database, receipt.reservation, receipt.client, receipt.peer)


def token_for(database: sqlite_utils.Database, uuid: str, client: PeerId, peer: PeerId) -> bytes:
    """The encoded envelope of a stored token for this client, of this peer; empty when there is none."""
    found = database.execute(
        "SELECT issuer, payload, signature FROM tokens WHERE uuid = ? AND client = ?"
        " UNION ALL SELECT issuer, payload, signature FROM foreign_tokens WHERE uuid = ? AND client = ?",
        [uuid, client, uuid, client],
    )
    for issuer, payload, signature in found.fetchmany(MOST_LOOKED_AT):
        with suppress(PeerMisbehaved):  # it was checked before it was stored: a damaged one is as good as none
            if peer in decode_as(payload, Token, Token.LIMIT).peers:
                return encode(Signed[Token](signer=issuer, payload=payload, signature=signature))
    return b""
