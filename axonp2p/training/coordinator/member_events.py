"""Messages of members and their owners, as events for the coordinator's machine. Pure."""

from __future__ import annotations

import hashlib

from axonp2p.jobs.messages import HandBack, OwnersMessage, WorkerPaused, WorkerResumed
from axonp2p.training.messages import Prepared, Progress, StateAdopted, TaskFailed
from axonp2p.training.round_messages import (
    LinkBroken,
    MemberLeaves,
    MemberPaused,
    MemberReady,
    MemberResumed,
    MistakeReported,
    OwnersWord,
    ProgressHeard,
    RoundReported,
    SegmentHeard,
    StateAdoptedBy,
)
from axonp2p.verification.claims import RoundDone, SegmentRedone
from axonp2p.verification.signed_frames import SignedFrame

MemberWord = MemberReady | StateAdoptedBy | ProgressHeard | RoundReported | SegmentHeard | MistakeReported | LinkBroken
"""Messages of a worker, which may send far too many. An owner's are counted where they are heard."""


def member_event(
    rank: int,
    message: Prepared | StateAdopted | Progress | RoundDone | SegmentRedone | TaskFailed,
    payload: bytes,
    *,
    signed: SignedFrame | None,
) -> MemberWord:
    """A message of a member's worker; `signed`: as its daemon stands by it."""
    match message:
        case Prepared():
            return MemberReady(rank, message, hashlib.sha256(payload).digest())
        case StateAdopted(state=state):
            return StateAdoptedBy(rank, state)
        case Progress():
            return ProgressHeard(rank, message)
        case RoundDone():
            return RoundReported(rank, message, signed)
        case SegmentRedone():
            return SegmentHeard(rank, message, signed)
        case TaskFailed():
            return MistakeReported(rank, message)


def owner_event(rank: int, message: OwnersMessage, now: float) -> OwnersWord:
    """The wish of a member's owner. `now` is monotonic seconds."""
    match message:
        case WorkerPaused(reason=reason):
            return MemberPaused(rank, reason)
        case WorkerResumed():
            return MemberResumed(rank)
        case HandBack(reason=reason, seconds=seconds):
            return MemberLeaves(rank, reason, now + seconds)
