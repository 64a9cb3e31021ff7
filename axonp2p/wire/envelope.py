"""`Signed[T]`: the bytes of a T, who signed them, and the signature, checked before T is decoded."""

from __future__ import annotations

from typing import Annotated, ClassVar, Generic, TypeVar

import msgspec

from axonp2p.errors import MessageTooLarge
from axonp2p.identity.keys import SIGNATURE_BYTES, PrivateKey, verify
from axonp2p.identity.peer_id import PeerId
from axonp2p.wire.codec import Message, decode_as, encode


class Signable(Message, frozen=True):
    """A message that may be signed: it names its purpose and its largest size in bytes."""

    PURPOSE: ClassVar[str]
    LIMIT: ClassVar[int]


S = TypeVar("S", bound=Signable)

ENVELOPE_OVERHEAD = 256
"""The bytes that an envelope adds to its payload, generously."""


LONGEST_PAYLOAD = 384 * 1024
"""Of anything that is signed; each type has its own limit below it."""
EncodedEnvelope = Annotated[bytes, msgspec.Meta(max_length=LONGEST_PAYLOAD + ENVELOPE_OVERHEAD)]
"""A `Signed` of a type that the carrier does not know."""


class Signed(Message, Generic[S], frozen=True):
    """An S that `signer` signed. Believe nothing in `payload` before `open_signed` returned."""

    signer: PeerId
    """The id of the key that signed."""
    payload: Annotated[bytes, msgspec.Meta(max_length=LONGEST_PAYLOAD)]
    """The bytes that were signed: a message of the purpose's type."""
    signature: Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]
    """Ed25519, over the purpose, a NUL and the payload."""


def sign(key: PrivateKey, message: S) -> Signed[S]:
    """`message` in an envelope."""
    payload = encode(message)
    return Signed(signer=key.peer_id, payload=payload, signature=key.sign(message.PURPOSE, payload))


def open_signed(signed: Signed[S], kind: type[S]) -> S:
    """The message inside, after its size, then its signature, were checked.

    Raises `MessageTooLarge`, `BadSignature` or `MalformedMessage`, in that order.
    """
    if len(signed.payload) > kind.LIMIT:
        raise MessageTooLarge(f"{kind.__name__} of {len(signed.payload)} bytes; at most {kind.LIMIT}")
    verify(signed.signer, kind.PURPOSE, signed.payload, signed.signature)
    return decode_as(signed.payload, kind, kind.LIMIT)


def encode_signed(key: PrivateKey, message: Signable) -> bytes:
    """Sign and encode in one go: what most senders want."""
    return encode(sign(key, message))


def decode_signed(data: bytes | memoryview, kind: type[S]) -> tuple[S, Signed[S]]:
    """The message in the bytes of an envelope and the envelope, checked as `open_signed` does."""
    signed: Signed[S] = decode_as(data, Signed[kind], kind.LIMIT + ENVELOPE_OVERHEAD)  # type: ignore[valid-type]
    return open_signed(signed, kind), signed
