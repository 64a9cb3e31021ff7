"""Compact rows: what the DHT holds of a peer, small enough that a page of several fits one datagram.

On the wire: 64 bytes of signature (Ed25519 over `axon/compact-row/1`, NUL and the rest), then one msgpack array.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import Port
from axonp2p.transport.messages import Fingerprint
from axonp2p.wire.codec import Message

PURPOSE = "axon/compact-row/1"
LARGEST = 320
"""Bytes of a signed compact row, at the most; about 190 is usual."""
MOST_TAGS = 4
OFFERS_WORK = 1
ISSUES_TOKENS = 2

PublicKey = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
PackedAddress = Annotated[bytes, msgspec.Meta(min_length=6, max_length=18)]
Tag = Annotated[str, msgspec.Meta(max_length=12, pattern=r"^[a-z][a-z0-9-]*\Z")]
Megabytes = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]


class CompactRow(Message, frozen=True, array_like=True):
    """One peer in few bytes. The full row comes from a tracker, or from the peer itself (GET /v1/row)."""

    public_key: PublicKey
    """Of the peer, who signs."""
    packed_addresses: Annotated[tuple[PackedAddress, ...], msgspec.Meta(max_length=2)]
    """Where it listens (TCP): 4 or 16 bytes of IP address and 2 of port each. None withdraws the peer."""
    dht: Port
    """UDP port of its DHT node on the same hosts; 0 when it has none that others can reach."""
    certificate: Fingerprint
    """SHA-256 of its TLS certificate."""
    sequence: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    """Higher than in every row before, full or compact."""
    expires: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    """Unix time in seconds."""
    cores: Annotated[int, msgspec.Meta(ge=0, le=4096)]
    """Cores for each job."""
    memory_mb: Megabytes
    """Memory for each job, MiB."""
    gpu_memory_mb: Megabytes
    """Memory of its largest GPU, MiB; 0 without one."""
    tags: Annotated[tuple[Tag, ...], msgspec.Meta(max_length=MOST_TAGS)]
    """What its environment has, such as `torch2`: ascending, each once."""
    flags: Annotated[int, msgspec.Meta(ge=0, le=3)]
    """1: it takes work at present; 2: it signs tokens for itself."""

    @property
    def peer(self) -> PeerId:
        """The peer's id."""
        raise NotImplementedError

    @property
    def withdrawn(self) -> bool:
        """Whether the peer has left. The row still says of which classes it was, to stand in their sets until it expires."""
        return not self.packed_addresses

    @property
    def offers_work(self) -> bool:
        """Whether it takes work at present."""
        return bool(self.flags & OFFERS_WORK)

    @property
    def issues_tokens(self) -> bool:
        """Whether it signs tokens for itself."""
        return bool(self.flags & ISSUES_TOKENS)

    @property
    def addresses(self) -> list[str]:
        """HOST:PORT (TCP), as in a full row."""
        raise NotImplementedError

    @property
    def dht_addresses(self) -> list[str]:
        """HOST:PORT (UDP) of its DHT node; empty when it has none."""
        raise NotImplementedError


def pack_addresses(addresses: list[str]) -> tuple[bytes, ...]:
    """The first two HOST:PORT whose host is an IP address, packed; names are left out, as nobody can check them."""
    raise NotImplementedError


def withdrawal_of(row: CompactRow, sequence: int, expires: int) -> CompactRow:
    """The row that takes `row` out of the sets it stands in: it lives at least as long, so that `row` never comes back.

    Also published, under the old row's keys, when a change moves a peer to other classes.
    """
    raise NotImplementedError


def sign_compact(key: PrivateKey, row: CompactRow) -> bytes:
    """The signed form. `row` must be of the same key, else ValueError."""
    raise NotImplementedError


def open_compact(data: bytes, now: float) -> CompactRow:
    """The row in a signed form when it is to be believed at `now` (Unix seconds).

    Raises `MessageTooLarge`, `MalformedMessage` (also when it claims to live too long), `StaleRow` or `BadSignature`.
    """
    raise NotImplementedError
