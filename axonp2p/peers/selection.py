"""Which peers a job asks first: those that fit, near ones before far ones, and why the others were left out.

Pure: facts in (what peers offer, how far they are), an order out. Two things are kept apart on purpose. A peer's
offer is its own claim and costs nothing to check, so it is looked at before anything is measured; how far away it is,
only this machine can know, so it is measured before anything is acquired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from axonp2p.errors import NobodyFits
from axonp2p.identity.peer_id import PeerId
from axonp2p.peers.capability import EVERY_SLOT_TAKEN, Capability, Need, why_not
from axonp2p.wire.schema import IN_ROWS, SCHEMAS, row_differs

MOST_CANDIDATES = 200


@dataclass(frozen=True)
class Candidate:
    """A peer that the table knows, and what it says it offers."""

    peer: PeerId
    name: str
    offer: Capability


@dataclass(frozen=True)
class Distance:
    """How far a candidate is: the shortest of some round trips in seconds, or why it could not be measured."""

    seconds: float | None
    why_not: str = ""
    given_up: bool = False
    """Whether it was not waited for, because others had answered: then nothing is wrong with it but that."""
    relay: str = ""
    """Through which relay it was measured (`transport.ways.Way` as text); empty for a direct line."""


def how_many_to_ask(wanted: int) -> int:
    """How many candidates to look at when `wanted` peers are needed: some are too far, some busy, some gone."""
    return min(3 * wanted + 4, MOST_CANDIDATES)


def nearest_first(candidates: Iterable[Candidate], estimates: Mapping[PeerId, float]) -> list[Candidate]:
    """Candidates in the order to measure them: by what coordinates tell of their distance in seconds.

    Those without an estimate stay where they stood, between the others: of them nothing is known, for or against.
    """
    mixed = list(candidates)
    places = [place for place, candidate in enumerate(mixed) if candidate.peer in estimates]
    ranked = sorted((mixed[place] for place in places), key=lambda candidate: estimates[candidate.peer])
    for place, candidate in zip(places, ranked, strict=True):
        mixed[place] = candidate
    return mixed


OTHER_VERSION = "runs another version of Axon"
"""How the reason begins why a peer whose messages are not ours is not hired."""
UNREACHABLE = "unreachable"


def other_version(theirs: str, kind: str) -> str:
    """Why a peer with this hash in its row is not hired for jobs of that kind; empty where its messages are ours."""
    if not row_differs(theirs, kind):
        return ""
    return f"{OTHER_VERSION} (its messages are {theirs or 'older than their own hash'}, ours {SCHEMAS[IN_ROWS]})"


def why_too_far(distance_s: float | None, max_rtt_s: float) -> str:
    """Why a peer at this distance is not hired; empty when it is near enough. None: it did not answer."""
    if distance_s is None:
        return UNREACHABLE
    return f"too far (max-rtt {max_rtt_s * 1000:g} ms)" if distance_s > max_rtt_s else ""


class Shortlist:
    """The candidates of one job, the best first, and a tally of the reasons why others are not among them."""

    def __init__(self, need: Need, max_rtt_s: float, also: Callable[[Capability], str] = lambda offer: "") -> None:
        """`also` says why a peer that meets the need cannot be had all the same, or nothing."""
        self._need = need
        self._also = also
        self._max_rtt_s = max_rtt_s
        self._waiting: list[tuple[float, Candidate]] = []
        self._seen: set[PeerId] = set()
        self._unseen = 0
        self._reasons: Counter[str] = Counter()
        self.taken: set[PeerId] = set()
        """Peers whose slots are all taken, as far as they are known by name."""

    @property
    def seen(self) -> int:
        """How many different peers were looked at."""
        return len(self._seen) + self._unseen

    def worth_measuring(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Those among new candidates whose offer fits; the others are tallied and never seen again."""
        fitting = []
        for candidate in candidates:
            if candidate.peer in self._seen:
                continue
            self._seen.add(candidate.peer)
            reason = why_not(candidate.offer, self._need) or self._also(candidate.offer)
            if reason:
                self._reasons[reason] += 1
            if reason == EVERY_SLOT_TAKEN:
                self.taken.add(candidate.peer)
            if not reason:
                fitting.append(candidate)
        return fitting

    def add_measured(self, candidates: Iterable[Candidate], distances: Mapping[PeerId, Distance]) -> list[Candidate]:
        """Put those that are near enough on the list, nearest first; gives back those that are too far."""
        too_far = []
        for candidate in candidates:
            seconds = distances[candidate.peer].seconds
            if reason := why_too_far(seconds, self._max_rtt_s):
                self._reasons[reason] += 1
                too_far += [candidate] if seconds is not None else []
            elif seconds is not None:
                self._waiting.append((seconds, candidate))
        # At the same distance the faster peer comes first; the id only makes the order certain.
        self._waiting.sort(key=lambda entry: (entry[0], -entry[1].offer.gflops, entry[1].peer))
        return too_far

    def __len__(self) -> int:
        """How many wait on the list."""
        return len(self._waiting)

    def take(self, count: int) -> list[Candidate]:
        """The next `count` candidates (or as many as there are), off the list."""
        taken = [candidate for _, candidate in self._waiting[:count]]
        del self._waiting[:count]
        return taken

    def refused(self, reason: str) -> None:
        """One that was taken from the list said no after all, or did not answer."""
        self._reasons[reason] += 1

    def add_unseen(self, count: int, reason: str) -> None:
        """So many more live, of which the table tells no more than the reason why they are not shown."""
        if count > 0:
            self._unseen += count
            self._reasons[reason] += count

    def nobody_fits(self, *, hired: int, needed: int) -> NobodyFits:
        """The error that says with numbers why there are too few."""
        seen = f"seen {self.seen} peer{'' if self.seen == 1 else 's'}"
        reasons = counted(self._reasons)
        return NobodyFits(
            f"this job needs {needed} peer{'' if needed == 1 else 's'} and can have {hired}",
            cause=f"{seen}: {reasons}" if reasons else f"{seen}; no other peer fits",
            fix=_fix(self._reasons, self.seen),
        )


NO_GPU = "has no GPU"
"""How the reason begins where a need asks for one (`capability.why_not`)."""
WITHOUT_GPU = (
    "without gpu-memory and gpu-capability under [need] the job goes to peers that compute on their processors"
)


def counted(reasons: Counter[str]) -> str:
    """How many peers say no for which reason: "lacks numpy (3), every slot is taken (1)"."""
    return ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common())


def _fix(reasons: Counter[str], seen: int) -> str:
    if not seen:
        return "`axon peers` shows who is there; axon-peer run --tracker URL lends another machine"
    common = reasons.most_common(1)[0][0] if reasons else ""
    if common.startswith(OTHER_VERSION):
        return "install the version of Axon that the peers run (AX-405); `axon version` shows yours"
    if common.startswith("too far"):
        return "raise max-rtt under [need] in job.toml"
    if common.startswith(NO_GPU):
        return WITHOUT_GPU
    if "packages" in common:
        return "docs/jobs.md#packages: who takes packages, and which; `axon check` says what each peer lacks"
    if common.startswith("lacks"):
        return "let the job bring it along (docs/jobs.md#packages), or ask for less under [need] in job.toml"
    if common.startswith("lends"):
        return "ask for less under [need] in job.toml; `axon peers` shows what is offered"
    return "wait for free peers: axon submit DIR --wait 10min; or lower peers and min-peers under [need] in job.toml"
