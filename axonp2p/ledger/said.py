"""A worker's message, signed by its daemon: so that it can be shown later who said it. Pure.

A daemon signs what its worker asks it to, unread: it says only that this worker, which works for that client on that
job, has said these bytes. The client's own code runs in the worker, so to others the signature proves no more than
that: docs/trust.md says what follows.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from axonp2p.identity.keys import PrivateKey, verify
from axonp2p.identity.peer_id import PeerId
from axonp2p.transport.messages import Uuid
from axonp2p.wire.codec import Message, encode

PURPOSE = "axon/said/1"


class Said(Message, frozen=True):
    """A speaker, a listener and the words between them; never sent, since both sides know it."""

    job: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    reservation: Uuid
    client: PeerId
    peer: PeerId
    sha256: Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
    """Of the bytes."""


def sign_said(key: PrivateKey, said: Said) -> bytes:
    """The signature of the daemon whose worker said it."""
    return key.sign(PURPOSE, encode(said))


def check_said(said: Said, signature: bytes) -> None:
    """Raises `BadSignature` unless `said.peer` signed it."""
    verify(said.peer, PURPOSE, encode(said), signature)
