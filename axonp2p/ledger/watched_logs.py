"""The heads that trackers showed, kept and compared (pure): a log that was rewritten or forked is named from then on.

For each tracker the largest head is kept that continues all before it. A new one is compared with it: either two heads
speak for themselves, or the tracker is asked for the proof that one continues the other. `heard` says which proof is
needed, `proved` takes it, `told` takes evidence that others found.

Trackers cost nothing, nor does a log that convicts its own tracker, or a thousand of them. So there is one conviction
of a tracker, and where there is no room the tracker that was heard of longest ago gives way, never a trusted one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from axonp2p.errors import PeerMisbehaved, Refused
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.tree_head import (
    ConsistencyProof,
    ForkEvidence,
    LogName,
    TreeHead,
    open_consistency,
    open_head,
    proves,
    why_exclusive,
    why_forked,
)
from axonp2p.wire.codec import Message, decode_as, encode
from axonp2p.wire.envelope import Signed

MOST_WATCHED = 64
"""Trackers, and convictions of trackers."""
WATCHED_LIMIT = 512 * 1024


class WatchedLog(Message, frozen=True):
    """Stored data about one tracker."""

    head: Signed[TreeHead]
    """The largest that continues all before it."""
    before: Signed[TreeHead] | None = None
    """The last head of its log before this one, if it began a new one."""


class WatchedFile(Message, frozen=True):
    """Its form on disk."""

    logs: Annotated[list[WatchedLog], msgspec.Meta(max_length=MOST_WATCHED)] = []
    """One for each tracker."""
    evidence: Annotated[list[ForkEvidence], msgspec.Meta(max_length=MOST_WATCHED)] = []
    """One for each tracker that rewrote or forked a log."""


@dataclass(frozen=True)
class ProofWanted:
    """The tracker has to prove that the second head continues the first."""

    first: Signed[TreeHead]
    second: Signed[TreeHead]

    @property
    def sizes(self) -> tuple[int, int]:
        """How many entries each has."""
        return open_head(self.first).size, open_head(self.second).size


@dataclass(frozen=True)
class Conviction:
    """A log that was rewritten or forked."""

    tracker: PeerId
    log: LogName
    why: str
    evidence: ForkEvidence


class WatchedLogs:
    """The heads of all trackers that were seen. `changed` says whether there is something to write down."""

    def __init__(self, kept: bytes = b"") -> None:
        """`kept` is what `encoded` gave. Raises `MalformedMessage` when it is not."""
        file = decode_as(kept, WatchedFile, WATCHED_LIMIT) if kept else WatchedFile()
        self.trusted: Callable[[PeerId], bool] = lambda tracker: False
        """Whether a tracker's log is watched whichever others there are."""
        self._logs = {open_head(one.head).tracker: one for one in file.logs}
        self._convicted: dict[PeerId, Conviction] = {}
        for evidence in file.evidence:
            self.told(evidence)
        self.changed = False

    def encoded(self) -> bytes:
        """All of it, for the disk."""
        file = WatchedFile(logs=list(self._logs.values()), evidence=[one.evidence for one in self.convicted])
        return encode(file)

    @property
    def convicted(self) -> list[Conviction]:
        """Trackers that rewrote or forked a log, each with the first that was found."""
        return list(self._convicted.values())

    @property
    def heads(self) -> list[Signed[TreeHead]]:
        """The head of each tracker, to be shown to others."""
        return [one.head for one in self._logs.values()]

    def conviction_of(self, tracker: PeerId) -> Conviction | None:
        """The conviction known against this tracker, also when it began another log since."""
        return self._convicted.get(tracker)

    def last(self, tracker: PeerId) -> WatchedLog | None:
        """The record kept of this tracker."""
        return self._logs.get(tracker)

    def heard(self, signed: Signed[TreeHead]) -> ProofWanted | None:
        """A head, from its tracker or from somebody who saw it; returns the proof that is to be asked for, if any.

        Raises what `open_head` raises.
        """
        head = open_head(signed)
        kept = self._logs.get(head.tracker)
        if kept is None:
            self._keep(head.tracker, WatchedLog(head=signed))
            self._make_room(self._logs, head.tracker)
            return None
        self._logs[head.tracker] = self._logs.pop(head.tracker)  # the last that was heard of
        last = open_head(kept.head)
        if last.log != head.log:
            self._other_log(head, signed, kept, last)
            return None
        small, large = (kept.head, signed) if last.size <= head.size else (signed, kept.head)
        if why := why_exclusive(last, head):
            self._convict(head, why, ForkEvidence(first=small, second=large))
            return None
        if last.size == head.size:
            if head.time > last.time:
                self._keep(head.tracker, msgspec.structs.replace(kept, head=signed))
            return None
        return ProofWanted(small, large)

    def proved(self, wanted: ProofWanted, answer: Signed[ConsistencyProof]) -> None:
        """The tracker's answer. Raises what `open_head` raises when it is none of this tracker's about these heads."""
        first, second = open_head(wanted.first), open_head(wanted.second)
        proof = open_consistency(answer, first, second)
        if not proves(proof, first, second):
            self.told(ForkEvidence(first=wanted.first, second=wanted.second, proof=answer))
            return
        kept = self._logs.get(second.tracker)
        if kept is not None and kept.head == wanted.first:
            self._keep(second.tracker, msgspec.structs.replace(kept, head=wanted.second))

    def told(self, evidence: ForkEvidence) -> None:
        """Somebody shows evidence. Evidence that convicts nobody is passed over."""
        try:
            why = why_forked(evidence)
            head = open_head(evidence.second)
        except (PeerMisbehaved, Refused):
            return
        self._convict(head, why, evidence)

    def _other_log(self, head: TreeHead, signed: Signed[TreeHead], kept: WatchedLog, last: TreeHead) -> None:
        # An old head of the log before, shown by somebody who saw it: news of nothing, but it may convict.
        before = open_head(kept.before) if kept.before else None
        if before is not None and before.log == head.log:
            if why := why_exclusive(before, head):
                first, second = sorted((kept.before or signed, signed), key=lambda one: open_head(one).size)
                self._convict(head, why, ForkEvidence(first=first, second=second))
        elif head.time >= last.time:
            self._keep(head.tracker, WatchedLog(head=signed, before=kept.head))

    def _keep(self, tracker: PeerId, log: WatchedLog) -> None:
        self._logs[tracker] = log
        self.changed = True

    def _convict(self, head: TreeHead, why: str, evidence: ForkEvidence) -> None:
        if head.tracker not in self._convicted:
            self._convicted[head.tracker] = Conviction(head.tracker, head.log, why, evidence)
            self._make_room(self._convicted, head.tracker)
            self.changed = True

    def _make_room(self, among: dict[PeerId, Any], newcomer: PeerId) -> None:
        if len(among) <= MOST_WATCHED:
            return
        others = (tracker for tracker in among if tracker != newcomer and not self.trusted(tracker))
        del among[next(others, newcomer)]
