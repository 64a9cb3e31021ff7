"""Compact rows: what the DHT holds of a peer, small enough that a page of several fits one datagram.

On the wire: 64 bytes of signature (Ed25519 over `axon/compact-row/1`, NUL and the rest), then one msgpack array.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import Annotated

import msgspec
from msgspec.structs import replace

from axonp2p.errors import MalformedMessage, MessageTooLarge, StaleRow
from axonp2p.identity.certificate_bytes import FINGERPRINT_BYTES, fingerprint_text
from axonp2p.identity.keys import SIGNATURE_BYTES, PrivateKey, verify_by_key
from axonp2p.identity.peer_id import PeerId, peer_id_of, short
from axonp2p.table.dht.routing.contact import host_of_packed, read_host
from axonp2p.table.records import LONGEST_LIFE_S, Port
from axonp2p.transport.address import PinnedAddress, join_host_port, split_host_port
from axonp2p.transport.messages import CLOCK_TOLERANCE_S, Fingerprint
from axonp2p.wire.codec import Message, decode_as, encode
from axonp2p.wire.quantities import Count, UnixTime

PURPOSE = "axon/compact-row/1"
LARGEST = 320
"""Bytes of a signed compact row, at the most; about 190 is usual."""
MOST_TAGS = 4
MOST_ADDRESSES = 2
MOST_RELAYS = 1
OFFERS_WORK = 1
ISSUES_TOKENS = 2
NOT_DIALABLE = 4
CARRIES = 8
_REMEMBERED = 2048

PublicKey = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
PackedAddress = Annotated[bytes, msgspec.Meta(min_length=6, max_length=18)]
PackedRelay = Annotated[bytes, msgspec.Meta(min_length=38, max_length=50)]
Tag = Annotated[str, msgspec.Meta(max_length=16, pattern=r"^[a-z][a-z0-9-]*\Z")]
Megabytes = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]


class CompactRow(Message, frozen=True, array_like=True):
    """One peer in few bytes. The full row comes from a tracker, or from the peer itself (GET /v1/row)."""

    public_key: PublicKey
    """Of the peer, who signs."""
    packed_addresses: Annotated[tuple[PackedAddress, ...], msgspec.Meta(max_length=MOST_ADDRESSES)]
    """Where it listens (TCP): 4 or 16 bytes of IP address and 2 of port each. None withdraws the peer."""
    dht: Port
    """UDP port of its DHT node on the same hosts; 0 when it has none that others can reach."""
    certificate: Fingerprint
    """SHA-256 of its TLS certificate."""
    sequence: Count
    """Higher than in every row before, full or compact."""
    expires: UnixTime
    """Unix time in seconds."""
    cores: Annotated[int, msgspec.Meta(ge=0, le=4096)]
    """Cores for each job."""
    memory_mb: Megabytes
    """Memory for each job, MiB."""
    gpu_memory_mb: Megabytes
    """Memory of its largest GPU, MiB; 0 without one."""
    tags: Annotated[tuple[Tag, ...], msgspec.Meta(max_length=MOST_TAGS)]
    """The names of what its environment has, such as `torch2`: ascending, each once."""
    flags: Annotated[int, msgspec.Meta(ge=0, le=15)]
    """1: it takes work at present; 2: it signs tokens for itself; 4: nobody could dial it; 8: it is a relay."""
    packed_relays: Annotated[tuple[PackedRelay, ...], msgspec.Meta(max_length=MOST_RELAYS)]
    """The relays that hold a connection of it: IP address, port, and the fingerprint that must answer there."""

    @property
    def peer(self) -> PeerId:
        """The peer's id."""
        return peer_id_of(self.public_key)

    @property
    def withdrawn(self) -> bool:
        """Whether the peer has left. The row still says of which classes it was, to stand in their sets until then."""
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
        return [_host_port(packed) for packed in self.packed_addresses]

    @property
    def relays(self) -> list[str]:
        """https://HOST:PORT#FINGERPRINT, as in a full row."""
        cut = -FINGERPRINT_BYTES
        return [f"https://{_host_port(one[:cut])}#{fingerprint_text(one[cut:])}" for one in self.packed_relays]

    @property
    def dialable(self) -> bool | None:
        """False when nobody could dial it; else it is not known."""
        return False if self.flags & NOT_DIALABLE else None

    @property
    def carries(self) -> bool:
        """Whether it is a relay for others."""
        return bool(self.flags & CARRIES)


def pack_addresses(addresses: Iterable[str]) -> tuple[bytes, ...]:
    """The first two HOST:PORT whose host is an IP address, packed; names are left out, as nobody can check them."""
    packed: list[bytes] = []
    for address in addresses:
        host, port = split_host_port(address)
        with suppress(MalformedMessage):
            packed.append(read_host(host).packed + port.to_bytes(2))
    return tuple(packed[:MOST_ADDRESSES])


def pack_relays(relays: Iterable[str]) -> tuple[bytes, ...]:
    """The first relay whose host is an IP address, packed."""
    packed: list[bytes] = []
    for relay in relays:
        address = PinnedAddress.parse(relay)
        with suppress(MalformedMessage):
            packed.append(read_host(address.host).packed + address.port.to_bytes(2) + (address.fingerprint or b""))
    return tuple(packed[:MOST_RELAYS])


def withdrawal_of(row: CompactRow, sequence: int, expires: int) -> CompactRow:
    """The row that takes `row` out of the sets it stands in: it lives at least as long, so that `row` never comes back.

    Also published, under the old row's keys, when a change moves a peer to other classes.
    """
    lasting = max(row.expires, expires)
    return replace(row, packed_addresses=(), packed_relays=(), dht=0, flags=0, sequence=sequence, expires=lasting)


def sign_compact(key: PrivateKey, row: CompactRow) -> bytes:
    """The signed form. `row` must be of the same key and keep the rules, else ValueError."""
    if row.peer != key.peer_id:
        raise ValueError("a row is signed by its own peer")
    payload = encode(row)
    _check(_read(payload))
    return key.sign(PURPOSE, payload) + payload


def open_compact(data: bytes, now: float) -> CompactRow:
    """The row in a signed form when it is to be believed at `now` (Unix seconds).

    Raises `MessageTooLarge`, `MalformedMessage` (also when it claims to live too long), `StaleRow` or `BadSignature`.
    """
    row = peek(data)
    if row.expires <= now - CLOCK_TOLERANCE_S:
        raise StaleRow(f"the compact row of {short(row.peer)} has expired")
    if row.expires > now + LONGEST_LIFE_S + CLOCK_TOLERANCE_S:
        raise MalformedMessage(f"a row may be valid for at most {LONGEST_LIFE_S} s")
    _check_signature(data)
    return row


@lru_cache(maxsize=_REMEMBERED)
def peek(data: bytes) -> CompactRow:
    """The content of a signed form, not yet to be believed. Raises `MessageTooLarge` or `MalformedMessage`.

    The reading stands before the signature here, unlike elsewhere: the key is part of the row, and a row that has
    expired or stands in the wrong place shall not cost the holder 60 us of Ed25519. The part read is one flat array.
    """
    if len(data) > LARGEST:
        raise MessageTooLarge(f"compact row of {len(data)} bytes; at most {LARGEST}")
    if len(data) <= SIGNATURE_BYTES:
        raise MalformedMessage(f"{len(data)} bytes are no compact row")
    row = _read(data[SIGNATURE_BYTES:])
    _check(row)
    return row


# A reader gets each row from several holders, and renewals bring each row to a node under several keys: the same bytes
# need one check of the signature, and no state but the bytes decides about it.
@lru_cache(maxsize=_REMEMBERED)
def _check_signature(data: bytes) -> None:
    signature, payload = data[:SIGNATURE_BYTES], data[SIGNATURE_BYTES:]
    verify_by_key(peek(data).public_key, PURPOSE, payload, signature)


def _read(payload: bytes) -> CompactRow:
    return decode_as(payload, CompactRow, LARGEST)


def _check(row: CompactRow) -> None:
    """The rules that the types do not tell. Raises `MalformedMessage`."""
    for packed in (*row.packed_addresses, *(relay[:-FINGERPRINT_BYTES] for relay in row.packed_relays)):
        host_of_packed(packed[:-2])
        if packed[-2:] == b"\0\0":
            raise MalformedMessage("port 0 is nowhere")
    if any(one >= other for one, other in pairwise(row.tags)):
        raise MalformedMessage("tags are ascending, each once")
    if row.withdrawn and (row.flags or row.dht or row.packed_relays):
        raise MalformedMessage("a withdrawn peer offers nothing")


def _host_port(packed: bytes) -> str:
    return join_host_port(host_of_packed(packed[:-2]), int.from_bytes(packed[-2:]))
