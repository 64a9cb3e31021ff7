"""The events of `job.events()`: the classes of all of them, those of every job first, then those of each kind.

    from axonp2p.events import JobFinished, RoundFinished

    for event in job.events():
        match event:
            case RoundFinished():
                print(f"round {event.round + 1} of {event.rounds}: loss {event.loss:.4f}")
            case JobFinished():
                print("done after", event.seconds, "seconds")

They are frozen msgspec structs; `events.jsonl` of a job's folder has the same fields, with the class's name in snake
case as `event`. Rounds, steps and indices count from 0 in them (what people read counts from 1). docs/events.md has
each with its fields. An event that this version does not know may come one day: leave it out.
"""

from __future__ import annotations

from axonp2p.client.events.events import BundleProgress as BundleProgress
from axonp2p.client.events.events import BundleSent as BundleSent
from axonp2p.client.events.events import Event as Event
from axonp2p.client.events.events import FileDamaged as FileDamaged
from axonp2p.client.events.events import JobCancelled as JobCancelled
from axonp2p.client.events.events import JobEndedBadly as JobEndedBadly
from axonp2p.client.events.events import JobFinished as JobFinished
from axonp2p.client.events.events import JobGoesOn as JobGoesOn
from axonp2p.client.events.events import JobPaused as JobPaused
from axonp2p.client.events.events import JobSubmitted as JobSubmitted
from axonp2p.client.events.events import JobWaiting as JobWaiting
from axonp2p.client.events.events import PackagesResolved as PackagesResolved
from axonp2p.client.events.events import PeerHandedBack as PeerHandedBack
from axonp2p.client.events.events import PeerHelped as PeerHelped
from axonp2p.client.events.events import PeerHired as PeerHired
from axonp2p.client.events.events import PeerLost as PeerLost
from axonp2p.client.events.events import PeerPaused as PeerPaused
from axonp2p.client.events.events import PeerRefused as PeerRefused
from axonp2p.client.events.events import PeerResumed as PeerResumed
from axonp2p.client.events.events import PeersAwaited as PeersAwaited
from axonp2p.client.events.events import PeersFound as PeersFound
from axonp2p.client.events.events import PieceWrong as PieceWrong
from axonp2p.client.events.events import ReceiptsMissing as ReceiptsMissing
from axonp2p.client.events.events import Reserved as Reserved
from axonp2p.client.events.events import RttMeasured as RttMeasured
from axonp2p.client.events.events import RttsGuessed as RttsGuessed
from axonp2p.kinds.map.events import CallFailed as CallFailed
from axonp2p.kinds.map.events import CallsDone as CallsDone
from axonp2p.kinds.map.events import ChunkCopied as ChunkCopied
from axonp2p.kinds.map.events import ChunkCrashed as ChunkCrashed
from axonp2p.kinds.map.events import ChunkDone as ChunkDone
from axonp2p.kinds.map.events import OpinionAwaited as OpinionAwaited
from axonp2p.kinds.map.events import PeerOutvoted as PeerOutvoted
from axonp2p.kinds.map.events import PeerSetAside as PeerSetAside
from axonp2p.kinds.map.events import ResultsDoubted as ResultsDoubted
from axonp2p.kinds.run.events import CopyBegun as CopyBegun
from axonp2p.kinds.run.events import CopyEnded as CopyEnded
from axonp2p.kinds.run.events import CopyRetried as CopyRetried
from axonp2p.kinds.run.events import IndexFailed as IndexFailed
from axonp2p.kinds.run.events import JobResults as JobResults
from axonp2p.kinds.run.events import OutputsKept as OutputsKept
from axonp2p.kinds.run.events import OutputsLost as OutputsLost
from axonp2p.kinds.run.events import ResultsDamaged as ResultsDamaged
from axonp2p.kinds.run.events import SpeculativeCopy as SpeculativeCopy
from axonp2p.kinds.train.check_events import ChecksAwaited as ChecksAwaited
from axonp2p.kinds.train.check_events import ChecksOff as ChecksOff
from axonp2p.kinds.train.check_events import ChecksUnended as ChecksUnended
from axonp2p.kinds.train.check_events import NothingLearnt as NothingLearnt
from axonp2p.kinds.train.check_events import PeerUnchecked as PeerUnchecked
from axonp2p.kinds.train.check_events import WorkChecked as WorkChecked
from axonp2p.kinds.train.events import BestUnknown as BestUnknown
from axonp2p.kinds.train.events import ExchangeChosen as ExchangeChosen
from axonp2p.kinds.train.events import PeerJoined as PeerJoined
from axonp2p.kinds.train.events import PeerLeftBehind as PeerLeftBehind
from axonp2p.kinds.train.events import PeerReady as PeerReady
from axonp2p.kinds.train.events import PeerRound as PeerRound
from axonp2p.kinds.train.events import PeersStarting as PeersStarting
from axonp2p.kinds.train.events import RoundFinished as RoundFinished
from axonp2p.kinds.train.events import RoundProgress as RoundProgress
from axonp2p.kinds.train.events import RoundRedone as RoundRedone
from axonp2p.kinds.train.events import RoundsLost as RoundsLost
from axonp2p.kinds.train.events import StateDamaged as StateDamaged
from axonp2p.kinds.train.events import StateFound as StateFound
from axonp2p.kinds.train.events import TaskFilesKept as TaskFilesKept
from axonp2p.kinds.train.events import TaskFilesLost as TaskFilesLost
from axonp2p.kinds.train.events import TrainingStops as TrainingStops
from axonp2p.kinds.train.events import ValuesLate as ValuesLate
