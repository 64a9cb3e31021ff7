"""The events that the coordinator hears of a job, and the actions that it is to take: the language of `round`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from axonp2p.errors import AxonError
from axonp2p.training.messages import Prepared, Progress, TaskFailed, ToWorkerTraining
from axonp2p.training.tuning.costs import ModelSize
from axonp2p.training.tuning.exchange_tuner import ExchangeChoice
from axonp2p.verification.claims import RoundDone, SegmentRedone
from axonp2p.verification.judgement import Judgement
from axonp2p.verification.own_proofs import OwnProof
from axonp2p.verification.signed_frames import SignedFrame

# --- heard ----------------------------------------------------------------------------------------


class BuiltModel(NamedTuple):
    """A model as a member has built it."""

    size: ModelSize
    file_layout: bytes
    """The hash of its file's layout."""


@dataclass(frozen=True)
class MemberReady:
    """The member has loaded the task and built its model."""

    rank: int
    prepared: Prepared
    file_layout: bytes
    """The hash of the layout of its model's file."""

    @property
    def model(self) -> BuiltModel:
        """The model that all members must have in common."""
        said = self.prepared
        return BuiltModel((said.parameters, said.values, said.exact), self.file_layout)


@dataclass(frozen=True)
class StateAdoptedBy:
    """The member has taken over a state that it was given."""

    rank: int
    state: bytes


@dataclass(frozen=True)
class ProgressHeard:
    """The member told how far its local steps are."""

    rank: int
    progress: Progress


@dataclass(frozen=True)
class RoundReported:
    """The member has finished local steps and exchange."""

    rank: int
    done: RoundDone
    signed: SignedFrame | None
    """The report as its daemon has signed it; None when it has not."""


@dataclass(frozen=True)
class SegmentHeard:
    """The member has done some steps of another again."""

    rank: int
    redone: SegmentRedone
    signed: SignedFrame | None
    """As above."""


@dataclass(frozen=True)
class MistakeReported:
    """The task's own code raised at the member."""

    rank: int
    mistake: TaskFailed


@dataclass(frozen=True)
class MemberLost:
    """The member is gone: its session, its worker or its lease ended, or it broke the protocol."""

    rank: int
    reason: str
    limit: str = ""
    """The limit of the sandbox that its worker went over, if that ended it."""


@dataclass(frozen=True)
class MemberPaused:
    """The member's owner needs the machine: its worker stands still where it is."""

    rank: int
    reason: str


@dataclass(frozen=True)
class MemberResumed:
    """The member's worker goes on."""

    rank: int


@dataclass(frozen=True)
class MemberLeaves:
    """The member's owner wants the machine back by `until` (monotonic seconds); it may be gone already."""

    rank: int
    reason: str
    until: float


@dataclass(frozen=True)
class LinkBroken:
    """The member cannot reach the member `to`."""

    rank: int
    to: int
    reason: str


@dataclass(frozen=True)
class MemberJoins:
    """One more member: its worker has the bundle. The rank is a new one."""

    rank: int
    name: str


@dataclass(frozen=True)
class LineHeard:
    """The speeds of the member's line, in bytes a second; 0 where it is not known."""

    rank: int
    upload: float
    download: float


@dataclass(frozen=True)
class StateKept:
    """This state is on the client's disk."""

    state: bytes


@dataclass(frozen=True)
class EndRounds:
    """The client wants no round after the one that runs; where none is accepted yet, none after the first."""


@dataclass(frozen=True)
class StopChecking:
    """The client goes: no check is waited for any longer."""


@dataclass(frozen=True)
class Tick:
    """Time has passed: said at `next_deadline()` or later."""


OwnersWord = MemberPaused | MemberResumed | MemberLeaves
"""The messages to be sent when an owner has come back to a member's machine, or has gone again."""

Event = (
    MemberReady
    | StateAdoptedBy
    | ProgressHeard
    | RoundReported
    | SegmentHeard
    | MistakeReported
    | MemberLost
    | OwnersWord
    | LinkBroken
    | MemberJoins
    | LineHeard
    | StateKept
    | EndRounds
    | StopChecking
    | Tick
)

# --- to do ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SetMembers:
    """Tell the daemons of all these who is in the job, and wait until they know before the next order."""

    members: list[int]
    joining: list[int] = field(default_factory=list)
    """The members that are in the job, but in no round yet."""


@dataclass(frozen=True)
class GoesOn:
    """A job that had a coordinator before goes on after so many rounds, from this state."""

    rounds: int
    state: bytes
    holders: list[int]
    """The members that hold it."""


@dataclass(frozen=True)
class Tell:
    """Send this to the member's worker."""

    rank: int
    message: ToWorkerTraining


@dataclass(frozen=True)
class SendStartState:
    """Send the file with the state that the job goes on from to the member's worker."""

    rank: int


@dataclass(frozen=True)
class MemberDropped:
    """The member is no longer in the job; end its lease."""

    rank: int
    reason: str


@dataclass(frozen=True)
class MemberLeftBehind:
    """The others go on without the member, which keeps its lease: it comes back as one that joins."""

    rank: int
    reason: str


@dataclass(frozen=True)
class MemberJoined:
    """The member holds the accepted state: it takes part from this round on."""

    rank: int
    round: int


@dataclass(frozen=True)
class Chosen:
    """From this round on the members exchange like this."""

    round: int
    choice: ExchangeChoice


@dataclass(frozen=True)
class JobWaits:
    """Without these paused members too few would be left: nothing is late until one of them goes on."""

    ranks: list[int]


@dataclass(frozen=True)
class EnoughAwake:
    """Enough members are awake again."""


@dataclass(frozen=True)
class RoundBegunAnew:
    """The round begins anew, from the last accepted state, as this attempt."""

    round: int
    attempt: int
    reason: str


@dataclass(frozen=True)
class EndsEarly:
    """No other round follows: the job ends after so many as if these were all. Said before the last is accepted."""

    rounds: int
    wished: bool
    """Whether the client said so (`EndRounds`); else the rounds themselves did (`RoundsContext.are_enough`)."""


@dataclass(frozen=True)
class RoundAccepted:
    """All members led the round to the same state; these are their reports."""

    round: int
    reports: Mapping[int, RoundDone]
    state: bytes


@dataclass(frozen=True)
class CheckEnded:
    """Some steps of a member were done again by others."""

    of: int
    by: list[int]
    """In the order in which they were asked."""
    round: int
    first: int
    """How many local steps of the round came before them."""
    last: int
    """And after how many they end."""
    judgement: Judgement
    convicted: list[int]
    """The members that lied: that one, or one that was asked."""
    flops: int
    """Spent on it."""
    attempt: int = 0
    """At the round."""
    report: SignedFrame | None = None
    """The claim, as the member's daemon signed it."""
    opinions: Sequence[SignedFrame] = ()
    """Where those in `by` were led, as theirs signed it."""
    proofs: Sequence[OwnProof] = ()
    """Of those that speak in it: they have come to ends of their own again."""


@dataclass(frozen=True)
class ChecksImpossible:
    """The work of this job cannot be checked, for this reason."""

    reason: str


@dataclass(frozen=True)
class MemberUnchecked:
    """Nobody can do the steps of this member again, for this reason: said once of each."""

    rank: int
    reason: str


@dataclass(frozen=True)
class AwaitingChecks:
    """All rounds are accepted; so many checks are waited for before the last one enters the books."""

    number: int


@dataclass(frozen=True)
class ChecksCutShort:
    """The job ends although so many checks have not."""

    number: int
    reason: str


@dataclass(frozen=True)
class HelpedSince:
    """Operations that members spent on others' steps since they reported their last round: work of theirs too."""

    flops: Mapping[int, int]


@dataclass(frozen=True)
class KeepState:
    """Fetch the state that this round led to, and put it on the disk; `StateKept` says that it is there."""

    round: int
    state: bytes


@dataclass(frozen=True)
class RoundBooked:
    """An accepted round enters the books."""

    round: int
    state: bytes | None
    """The state that is on the disk for it; None: the round is at risk until one is kept."""


@dataclass(frozen=True)
class Trained:
    """All rounds are accepted: every one of `members` holds `state` and can be asked for it."""

    state: bytes
    members: list[int]


@dataclass(frozen=True)
class GiveUp:
    """The job cannot go on."""

    error: AxonError
    too_few: bool = False
    """Whether it could with more members."""


@dataclass(frozen=True)
class Leave:
    """Owners took so many machines back that too few stay: fetch the state while somebody can give it, and end.

    The job can be resumed with others.
    """

    reason: str


Told = (
    GoesOn
    | MemberDropped
    | MemberLeftBehind
    | MemberJoined
    | Chosen
    | RoundBegunAnew
    | EndsEarly
    | JobWaits
    | EnoughAwake
    | RoundBooked
    | CheckEnded
    | ChecksImpossible
    | MemberUnchecked
    | AwaitingChecks
    | ChecksCutShort
    | HelpedSince
)
"""The progress that is decided and only has to be shown."""

Action = Told | SetMembers | Tell | SendStartState | RoundAccepted | KeepState | Trained | Leave | GiveUp
