"""The questions to a tracker's log, and its answers."""

from __future__ import annotations

from typing import Annotated

import msgspec

from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.entry import ENTRY_LIMIT
from axonp2p.ledger.merkle import HASH_BYTES, LONGEST_PATH
from axonp2p.ledger.receipt import RECEIPTS_LIMIT
from axonp2p.ledger.tree_head import ConsistencyProof, ForkEvidence, Hash, Path, Size, TreeHead
from axonp2p.ledger.watched_logs import MOST_WATCHED
from axonp2p.wire.codec import Message
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, EncodedEnvelope, Signed

LOG_ASKED_LIMIT = 4096
_HEAD = TreeHead.LIMIT + ENVELOPE_OVERHEAD
PROOF_LIMIT = ConsistencyProof.LIMIT + ENVELOPE_OVERHEAD
MOST_EVIDENCE = 16
HEADS_LIMIT = (MOST_WATCHED + 1) * _HEAD + MOST_EVIDENCE * (2 * _HEAD + PROOF_LIMIT) + 1024
MOST_LEAVES = 2048
LEAVES_LIMIT = MOST_LEAVES * (HASH_BYTES + 9) + 256
MOST_ENTRIES = 100
_PATH = LONGEST_PATH * (HASH_BYTES + 2) + 64
ENTRIES_LIMIT = RECEIPTS_LIMIT + 1024
HISTORY_LIMIT = MOST_ENTRIES * (ENTRY_LIMIT + _PATH) + _HEAD + 256

PlaceKey = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Entry = Annotated[bytes, msgspec.Meta(max_length=ENTRY_LIMIT)]


class HeadsTold(Message, frozen=True):
    """A tracker's head, and what it saw of the others."""

    own: Signed[TreeHead]
    """Its own log, as it is now."""
    seen: Annotated[list[Signed[TreeHead]], msgspec.Meta(max_length=MOST_WATCHED)] = []
    """The last head of each other tracker."""
    evidence: Annotated[list[ForkEvidence], msgspec.Meta(max_length=MOST_EVIDENCE)] = []
    """Against logs that were rewritten or forked."""


class ProofAsked(Message, frozen=True):
    """Prove that the log of `second` entries continues that of `first`."""

    first: Size
    """Entries in the smaller one."""
    second: Size
    """Entries in the larger one."""


class Included(Message, frozen=True):
    """An entry with the proof that it is one."""

    number: Size
    """From 0."""
    entry: Entry
    """An encoded `DoublySigned` or `Voided`."""
    path: Path = []
    """The hashes of RFC 9162, 2.1.3, to the root of the head that comes along; empty when no proof was asked for."""


class InclusionAsked(Message, frozen=True):
    """Prove that an entry is in the log."""

    place: PlaceKey
    """The key of its reservation, peer and number, or of its client, peer and job."""
    leaf: Hash
    """SHA-256 of a zero byte and the entry."""


class InclusionTold(Message, frozen=True):
    """The proof."""

    head: Signed[TreeHead]
    """The log in which it is."""
    included: Included
    """The entry and its path."""


class LeavesAsked(Message, frozen=True):
    """The hashes of so many entries, to find those that one lacks."""

    first: Size
    """Number of the first."""
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_LEAVES)]
    """How many at most."""


class LeavesTold(Message, frozen=True):
    """As many of them as there are."""

    leaves: Annotated[bytes, msgspec.Meta(max_length=MOST_LEAVES * HASH_BYTES)]
    """32 bytes each."""
    places: Annotated[list[PlaceKey], msgspec.Meta(max_length=MOST_LEAVES)]
    """The key of each, see `InclusionAsked`."""


class EntriesAsked(Message, frozen=True):
    """These entries."""

    numbers: Annotated[list[Size], msgspec.Meta(min_length=1, max_length=MOST_ENTRIES)]
    """From 0."""


class EntriesTold(Message, frozen=True):
    """The first of the entries that were asked for, as many as fit, and what their reservations stand on."""

    entries: Annotated[list[Entry], msgspec.Meta(max_length=MOST_ENTRIES)]
    """Each an encoded `DoublySigned` or `Voided`; with a `Voided` no other entry comes."""
    tokens: Annotated[list[EncodedEnvelope], msgspec.Meta(max_length=MOST_ENTRIES)]
    """Encoded `Signed[Token]`, each once."""


class HistoryAsked(Message, frozen=True):
    """The entries about one key, the newest first."""

    key: PeerId
    """A client's or a peer's id."""
    before: Size = 0
    """Only entries with smaller numbers; 0: the newest."""
    size: Size = 0
    """Of the log of so many entries, which this tracker signed; 0: of all, under a new head."""
    prove: bool = False
    """Whether each shall come with its path."""
    only_voidings: bool = False
    """Whether only those that make receipts void are asked for."""


class KeyHistoryTold(Message, frozen=True):
    """At most 100 of them."""

    head: Signed[TreeHead]
    """The log to which paths and numbers belong."""
    entries: Annotated[list[Included], msgspec.Meta(max_length=MOST_ENTRIES)]
    """The newest first."""
