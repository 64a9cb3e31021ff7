"""A tracker's signed statements on its log: heads, proofs that one continues another, and the conviction that follows
from two that cannot both be true (pure).

An honest tracker signs heads of one log that only grows, and gives no head an earlier time than that of a smaller one.
So its own signatures suffice to convict one that rewrote its past or shows different logs to different people, and
whoever has them can show them to anybody.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, ClassVar

import msgspec

from axonp2p.errors import BadSignature, Refused
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.merkle import HASH_BYTES, LONGEST_PATH, is_consistent
from axonp2p.wire.codec import Message
from axonp2p.wire.envelope import Signable, Signed, open_signed
from axonp2p.wire.quantities import LATEST, UnixTime

Hash = Annotated[bytes, msgspec.Meta(min_length=HASH_BYTES, max_length=HASH_BYTES)]
Path = Annotated[list[Hash], msgspec.Meta(max_length=LONGEST_PATH)]
LogName = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}\Z")]
Size = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class TreeHead(Signable, frozen=True):
    """A tracker's log at one moment."""

    PURPOSE: ClassVar[str] = "axon/tree-head/1"
    LIMIT: ClassVar[int] = 256

    tracker: PeerId
    """The tracker whose log it is."""
    log: LogName
    """Which of its logs: its database's name. A tracker that lost its disk, or restored a backup, begins a new one."""
    size: Size
    """How many entries."""
    root: Hash
    """The Merkle tree hash over them."""
    time: UnixTime
    """Unix time in seconds, never less than in a head of fewer entries."""


class ConsistencyProof(Signable, frozen=True):
    """That a log of `second` entries begins with that of `first`. Signed: a wrong one speaks against its tracker."""

    PURPOSE: ClassVar[str] = "axon/consistency/1"
    LIMIT: ClassVar[int] = 256 + LONGEST_PATH * (HASH_BYTES + 2)

    tracker: PeerId
    """The tracker whose log it is."""
    log: LogName
    """Which of its logs."""
    first: Size
    """Entries in the smaller one."""
    second: Size
    """Entries in the larger one."""
    path: Path
    """The hashes of RFC 9162, 2.1.4."""


class ForkEvidence(Message, frozen=True):
    """Two heads of one log that cannot both be true."""

    first: Signed[TreeHead]
    """The head of fewer entries, or either of two with as many."""
    second: Signed[TreeHead]
    """The other one."""
    proof: Signed[ConsistencyProof] | None = None
    """The tracker's own proof from the first to the second, where it is the proof that is wrong."""


def open_head(signed: Signed[TreeHead]) -> TreeHead:
    """The head when its own tracker signed it. Raises what `open_signed` raises, and `BadSignature`."""
    head = open_signed(signed, TreeHead)
    if head.tracker != signed.signer:
        raise BadSignature(f"a head of tracker {short(head.tracker)} was signed by {short(signed.signer)}")
    return head


def open_consistency(signed: Signed[ConsistencyProof], first: TreeHead, second: TreeHead) -> ConsistencyProof:
    """The proof when the tracker of both heads gave it for them, right or wrong. Raises as `open_head`."""
    proof = open_signed(signed, ConsistencyProof)
    said = (signed.signer, proof.tracker, proof.log, proof.first, proof.second)
    if said != (first.tracker, first.tracker, first.log, first.size, second.size):
        raise BadSignature(f"{short(signed.signer)} gave a proof about other heads than those it was asked about")
    return proof


def proves(proof: ConsistencyProof, first: TreeHead, second: TreeHead) -> bool:
    """Whether the log of `second` continues that of `first`."""
    return is_consistent(first.size, first.root, second.size, second.root, proof.path)


def why_forked(evidence: ForkEvidence) -> str:
    """The tracker's fault, in words. Raises `Refused` when this convicts nobody, and what opening it raises."""
    first, second = open_head(evidence.first), open_head(evidence.second)
    if (first.tracker, first.log) != (second.tracker, second.log):
        raise Refused("those are heads of two logs")
    if why := why_exclusive(first, second):
        return why
    if evidence.proof is None:
        raise Refused("one of those heads may well continue the other")
    if proves(open_consistency(evidence.proof, first, second), first, second):
        raise Refused("its proof leads from the one head to the other")
    return (
        f"it rewrote its past: its own proof does not lead from its {first.size} entries ({first.root.hex()[:16]}, "
        f"{_when(first)}) to its {second.size} ({second.root.hex()[:16]}, {_when(second)})"
    )


def why_exclusive(first: TreeHead, second: TreeHead) -> str:
    """Why two heads of one log cannot both be true, whatever lies between; empty when they can.

    A later head of fewer entries is not among them: a tracker whose disk lost what it had synced signs one, and has the
    same entries again once others gave them back. If it goes on with other entries, its own proof convicts it then.
    """
    if first.size != second.size or first.root == second.root:
        return ""
    return (
        f"it signed two logs of {first.size} entries: {first.root.hex()[:16]} ({_when(first)}) and "
        f"{second.root.hex()[:16]} ({_when(second)})"
    )


def why_shrunk(first: TreeHead, second: TreeHead) -> str:
    """That a log has lost entries, in words; empty when the larger one of its two heads is not the earlier one."""
    small, large = sorted((first, second), key=lambda head: head.size)
    if small.time <= large.time:
        return ""
    return f"its log lost entries: {large.size} of them ({_when(large)}), then {small.size} ({_when(small)})"


def _when(head: TreeHead) -> str:
    return datetime.fromtimestamp(min(head.time, LATEST), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
