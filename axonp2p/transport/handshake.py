"""The first words of a session: the listener challenges, the caller proves its key. Decisions only, no socket."""

from __future__ import annotations

from collections.abc import Collection

from axonp2p.errors import BadSignature, VersionMismatch
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.transport.messages import HANDSHAKE_LIMIT, Challenge, Hello, Refusal, Welcome, error_of
from axonp2p.wire.codec import PROTOCOL_VERSION, decode, encode
from axonp2p.wire.envelope import decode_signed, encode_signed

SESSION_PATH = "/v1/session"


def make_challenge(listener: PeerId, nonce: bytes) -> bytes:
    """The listener's first word. `nonce` must be fresh for every caller."""
    return encode(Challenge(protocol=PROTOCOL_VERSION, nonce=nonce, listener=listener))


def answer_challenge(data: bytes, key: PrivateKey, *, peer: PeerId, fingerprint: bytes, called: str) -> bytes:
    """The caller's proof, when it is `peer` that asks; `fingerprint` is the one that the caller has pinned.

    Raises `VersionMismatch`, `PeerMisbehaved`, or what the listener refused with.
    """
    challenge = decode(data, Challenge | Refusal, HANDSHAKE_LIMIT)
    if isinstance(challenge, Refusal):
        raise error_of(challenge, called)
    _check_version(challenge.protocol, called)
    if challenge.listener != peer:
        raise BadSignature(f"{called} should be {short(peer)} but calls itself {short(challenge.listener)}")
    hello = Hello(protocol=PROTOCOL_VERSION, nonce=challenge.nonce, listener=peer, certificate=fingerprint)
    return encode_signed(key, hello)


def check_hello(data: bytes, *, nonce: bytes, listener: PeerId, fingerprints: Collection[bytes]) -> PeerId:
    """The listener's verdict: whose key answered the challenge. `fingerprints` are of the certificates that it shows.

    Raises `VersionMismatch` or `PeerMisbehaved`."""
    hello, signed = decode_signed(data, Hello)
    _check_version(hello.protocol, "the caller")
    if hello.nonce != nonce:
        raise BadSignature("the proof answers another challenge")
    if hello.listener != listener:
        raise BadSignature("the proof is meant for another listener")
    if hello.certificate not in fingerprints:
        raise BadSignature("the caller sees another certificate than ours", cause="somebody is in between")
    return signed.signer


def check_welcome(data: bytes, called: str) -> None:
    """Whether the listener took the proof. Raises what it refused with, or `PeerMisbehaved`."""
    answer = decode(data, Welcome | Refusal, HANDSHAKE_LIMIT)
    if isinstance(answer, Refusal):
        raise error_of(answer, called)


def _check_version(theirs: int, who: str) -> None:
    if theirs != PROTOCOL_VERSION:
        raise VersionMismatch(
            f"{who} speaks protocol {theirs}, this side speaks {PROTOCOL_VERSION}",
            fix="install the same version of axonp2p on both sides",
        )
