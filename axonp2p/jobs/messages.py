"""The conversation between a client and a peer about one job, and between the members of a job.

A session's first message says what it is for. `TakeLease` makes it a lease: the client's, for one job. When such a
session is lost after the bundle has come, the worker waits for a while, and the same client may take it back.

    client                                   peer
      | TakeLease(token, job, kind, ...) ---> |  checks the token, holds a slot, starts the worker at once
      | <---------------- LeaseTaken          |
      | SetRoster(rank, members) -----------> |
      | <---------------- RosterSet           |
      | BlobManifest, BlobPiece ... --------> |  (`blobs.messages`)
      | <---------------- BlobHave, BlobGot   |
      | <---------------- BlobReceived        |
      | BlobManifest ... DropBlob ----------> |  further blobs, for the worker, at any time
      | ToWorker, FromWorker <--------------> |  carried unread between coordinator and worker
      | <---------------- LineMeasured        |  now and then, while members exchange
      | SignReceipt ------------------------> |  after each accepted round
      | <------ ReceiptSigned, ReceiptRefused |
      | FetchLog / LogPart <----------------> |
      | FollowLog(start) -------------------> |
      | <---------------- LogNews ...         |  what the job writes, as it comes
      | <---- WorkerPaused, WorkerResumed       |  the owner is back: the worker stands still, then goes on
      | <---------------- HandBack(seconds)     |  the owner wants the machine: the lease ends soon
      | EndLease ---------------------------> |  the worker and its files are removed
      | <---------------- LeaseEnded          |

`JoinMesh` makes it a link: from one member's daemon to another's, on which `Carry` travels (`transport.mesh`) and
what members say of blobs (`blobs.messages`). `RegisterAtRelay` makes the listener a relay for the
caller (`transport.relay`).
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from axonp2p.blobs.messages import (
    BlobDropped,
    BlobGot,
    BlobHave,
    BlobLie,
    BlobManifest,
    BlobPiece,
    BlobReceived,
    BlobRefused,
    DropBlob,
)
from axonp2p.identity.keys import SIGNATURE_BYTES
from axonp2p.transport.messages import JoinMesh, Refusal, Text, Uuid
from axonp2p.transport.tunnel.messages import RegisterAtRelay
from axonp2p.wire.codec import Message
from axonp2p.wire.envelope import EncodedEnvelope
from axonp2p.wire.frame import PAYLOAD_LIMIT
from axonp2p.wire.quantities import Cores, GpuCapability, UnixTime
from axonp2p.wire.ranks import MOST_MEMBERS, Rank
from axonp2p.wire.schema import Schema

JobId = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")]
Signature = Annotated[bytes, msgspec.Meta(max_length=SIGNATURE_BYTES)]
"""Ed25519; empty: not signed."""
Size = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
Epoch = Annotated[int, msgspec.Meta(ge=0, le=2**31)]


SignedRow = Annotated[bytes, msgspec.Meta(min_length=1, max_length=2048)]
"""An encoded `Signed[Row]`."""


class TakeLease(Message, tag=True, frozen=True, omit_defaults=True):
    """Give me the slot that this token promises, for this job."""

    token: EncodedEnvelope
    """An encoded `Signed[Token]`."""
    job: JobId
    kind: Annotated[str, msgspec.Meta(max_length=32)]
    """Of `jobs.kinds`: the peer's own registry says which program the worker is."""
    cores: Cores
    memory_mb: Size
    """Memory that the job asks for; the peer's own limits always apply."""
    datasets: Annotated[list[Annotated[str, msgspec.Meta(max_length=64)]], msgspec.Meta(max_length=16)] = []
    """Names of data on the peer's machine that the job wants to read, each under /data/NAME."""
    grace: Annotated[int, msgspec.Meta(ge=0, le=3600)] = 0
    """For how many seconds the worker shall wait when the session is lost; who then takes the same lease again has it
    back. The peer may wait for less."""
    schema: Schema = ""
    """Which messages of a job the client speaks (`wire.schema`)."""
    gpu_memory_mb: Size = 0
    """MiB that the job asks for on a GPU, which is then the job's alone; 0 and no capability: it gets none."""
    gpu_capability: GpuCapability = ""
    """The least compute capability of that GPU; empty: any."""

    @property
    def wants_gpu(self) -> bool:
        """Whether the job is to have a GPU."""
        return bool(self.gpu_memory_mb or self.gpu_capability)


class LeaseTaken(Message, tag=True, frozen=True):
    """The slot is yours until `until` (Unix seconds); a worker is starting."""

    until: UnixTime
    """Unix seconds."""
    cores: Cores
    """Cores that the job gets."""
    memory_mb: Size
    """MiB; the job is ended when it uses more."""
    row: SignedRow
    """The peer's newest row, for the rosters of the job: members dial no address that its own peer did not sign."""
    waited: bool = False
    """Whether it is the worker of an earlier session of this client, which has the bundle."""


class Member(Message, frozen=True):
    """One peer of a job. Its identity and its addresses are in its own row, which the client cannot change."""

    rank: Rank
    reservation: Uuid
    """Of the lease that the member works under: a job whose busy peers were replaced has several."""
    row: SignedRow
    """As it came with the member's `LeaseTaken`."""


class SetRoster(Message, tag=True, frozen=True):
    """The members of the job. Ranks never change during a job; a missing rank has left."""

    epoch: Epoch
    """Grows with each roster of a job."""
    rank: Rank
    """The rank of the peer that this is sent to."""
    members: Annotated[list[Member], msgspec.Meta(min_length=1, max_length=MOST_MEMBERS)]
    """The receiver is one of them."""


class RosterSet(Message, tag=True, frozen=True):
    """The roster is in force: links from its members are accepted."""

    epoch: Epoch
    """Of the roster that is in force."""


class ToWorker(Message, tag=True, frozen=True):
    """The payload is for the worker."""


class FromWorker(Message, tag=True, frozen=True):
    """The payload is from the worker."""

    signature: Signature = b""
    """The peer's for `axon/said/1`, over who said the payload to whom, where the worker asked for it."""


class WorkerStarted(Message, tag=True, frozen=True):
    """The worker runs and has loaded what it can before the bundle is there."""

    seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)]
    """From the start of the process."""


class WorkerEnded(Message, tag=True, frozen=True):
    """The worker is gone; the lease continues until it is ended."""

    reason: Text
    """In a sentence."""
    limit: Annotated[str, msgspec.Meta(max_length=32)] = ""
    """The limit that it went over ("memory", "processes", "time", ...), or empty."""
    log_tail: Annotated[str, msgspec.Meta(max_length=4000)] = ""
    """The end of what the job wrote."""


class WorkerPaused(Message, tag=True, frozen=True):
    """The owner needs the machine: the worker is frozen, and later continues or is handed back."""

    reason: Text
    """In a sentence: why it waits."""


class WorkerResumed(Message, tag=True, frozen=True):
    """The worker continues."""


class HandBack(Message, tag=True, frozen=True):
    """The owner wants the machine back: end the lease within `seconds`, or the peer does."""

    reason: Text
    """In a sentence."""
    seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)]
    """Enough for the present round where that is possible; 0: the worker has gone already."""


class LinkLost(Message, tag=True, frozen=True):
    """This peer cannot reach the member with that rank."""

    rank: Rank
    """Of the member that is out of reach."""
    reason: Text
    """In a sentence."""


class LineMeasured(Message, tag=True, frozen=True):
    """How fast this peer's line was of late, over all its links; said again when that has changed by much."""

    upload: Size
    """Bytes a second, never over the owner's limit."""
    download: Size
    """Bytes a second, as the others sent; the line itself may be faster."""


class SignReceipt(Message, tag=True, frozen=True):
    """The client's signed receipt (an encoded `Signed[Receipt]`), for the peer to sign as well."""

    receipt: Annotated[bytes, msgspec.Meta(max_length=2048)]


class ReceiptSigned(Message, tag=True, frozen=True):
    """An encoded `DoublySigned`."""

    receipt: Annotated[bytes, msgspec.Meta(max_length=4096)]


class ReceiptRefused(Message, tag=True, frozen=True):
    """The peer does not sign that receipt; the lease continues."""

    reason: Text
    """It is not the next one, or there is no room to keep it."""


class FetchLog(Message, tag=True, frozen=True):
    """Send what the job wrote to its standard output and error."""

    start: Size = 0
    """How many bytes of what the job wrote are known already."""


class LogPart(Message, tag=True, frozen=True):
    """The next bytes of the log, as payload."""

    offset: Size
    total: Size


class FollowLog(Message, tag=True, frozen=True):
    """Send what the job writes as it comes, for as long as this session lasts. Said again, it begins anew."""

    start: Size
    """How many bytes of what the job wrote are known already."""


class LogNews(Message, tag=True, frozen=True):
    """The next bytes of a log that is followed, as payload: cleaned as in `LogPart`, so of another length perhaps."""

    start: Size
    """Where they begin in what the job wrote. Earlier output that was not sent is no longer kept."""
    end: Size
    """Where they end there."""


class EndLease(Message, tag=True, frozen=True):
    """The client needs the peer no longer."""

    reason: Text = ""
    """Why the peer had to leave the job before its end; empty when it did not have to."""


class LeaseEnded(Message, tag=True, frozen=True):
    """The slot is free again; worker and files are removed. The peer says it too when its owner ends the lease."""

    reason: Text = ""
    """Empty when the client wished it."""


FirstMessage = TakeLease | JoinMesh | RegisterAtRelay
ClientMessage = (
    BlobManifest | BlobPiece | DropBlob | SetRoster | ToWorker | SignReceipt | FetchLog | FollowLog | EndLease
)
PeerMessage = (
    LeaseTaken
    | BlobHave
    | BlobGot
    | BlobLie
    | BlobReceived
    | BlobRefused
    | BlobDropped
    | RosterSet
    | FromWorker
    | WorkerStarted
    | WorkerEnded
    | WorkerPaused
    | WorkerResumed
    | HandBack
    | LinkLost
    | LineMeasured
    | ReceiptSigned
    | ReceiptRefused
    | LogPart
    | LogNews
    | LeaseEnded
    | Refusal
)

OwnersMessage = WorkerPaused | WorkerResumed | HandBack
"""The messages of a peer for its owner."""

LOG_BYTES_A_SECOND = 64 * 1024
"""How fast a log is followed: as much of its cleaned text is sent."""
MOST_LOG_NEWS = 64 * 1024
"""Bytes of payload of one `LogNews`."""
PART_BYTES = PAYLOAD_LIMIT // 4
"""How large the parts of files are that we send: small enough that control messages slip between them."""
