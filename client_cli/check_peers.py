"""The part of `axon check` for jobs of every kind: the peers that would take a job now, and why others would not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from axonp2p.client.packages.plan import WheelSet
from axonp2p.client.queries import PeerState, SeenPeer, Survey
from axonp2p.errors import AxonError, IndexUnreachable, PackagesWrong
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.spec import JobSpec, NeedSpec, need_of
from axonp2p.peers.capability import Capability, Need, gpu_words, read_need, why_not
from axonp2p.peers.selection import NO_GPU, WITHOUT_GPU, counted, how_many_to_ask, why_too_far
from axonp2p.plain_text import bytes_text, plural
from axonp2p.table.sightings import DHT
from client_cli.context import Context
from client_cli.meanwhile import Meanwhile
from client_cli.text.kind_text import Command
from client_cli.text.render import pairs

MOST_NAMES = 8
_CONVICTED = "convicted of false work, in an earlier job of yours"


@dataclass(frozen=True)
class CheckAnswer:
    """A job without a mistake so far: as text for people, and as data for programs."""

    text: str
    data: dict[str, Any]
    asked: PeersAsked


@dataclass(frozen=True)
class PeersAsked:
    """The trackers' answer about the peers that would take a job."""

    found: int | None
    """Peers that would take it now; None when no tracker could be asked."""
    trouble: str = ""
    """Why none could."""
    needed: int = 0
    """With fewer the job does not begin."""
    packages: str = ""
    """The number and size of the wheels that they would be sent; empty where the job brings no packages along."""
    names: tuple[str, ...] = ()
    """Of those that would take it, the first few."""
    refusing: Counter[str] = field(default_factory=Counter)
    """Why others would not: how many, by the reason."""

    @property
    def too_few(self) -> bool:
        """Whether the job could not begin now."""
        return self.found is not None and self.found < self.needed


@dataclass(frozen=True)
class JobHere:
    """A job that is checked."""

    given: str
    """As it was named on the command line."""
    spec: Any
    """Of its kind."""
    bundle: Bundle
    context: Context
    meanwhile: Meanwhile
    ask: Callable[[], PeersAsked]
    """Asks who would take it."""


TryHere = Callable[[JobHere], CheckAnswer]
"""Looks for mistakes, by trying the job here, and asks for peers. Raises the mistake."""


def in_order(given: str, facts: dict[str, str], asked: PeersAsked, command: Command, *, tried: bool) -> str:
    """The text for people about a job without a mistake, with the commands that come next."""
    steps = [command("submit", given)]
    if asked.found is None:
        steps.insert(0, command("swarm", "up"))
    if asked.too_few:
        steps.insert(0, command("peers"))
    told = pairs({name: fact for name, fact in facts.items() if fact}, indent="  ")
    verdict = "is in order" if tried else "has no mistake that can be found here"
    if asked.too_few:
        verdict = "has no mistake, but too few peers would take it now"
    return "\n".join([f"{given} {verdict}.", told, "Next:", *(f"  {step}" for step in steps)])


def common_data(spec: JobSpec, files: int, bundle_bytes: int, asked: PeersAsked, not_tried: str) -> dict[str, Any]:
    """The data of `axon check --json` for jobs of every kind. `not_tried`: why the job was not tried here."""
    return {
        "ok": True,
        "name": spec.name,
        "files": files,
        "bundle_bytes": bundle_bytes,
        "tried": not not_tried,
        "not_tried": not_tried,
        "peers_wanted": spec.need.peers,
        "peers_found": asked.found,
        "peers_refusing": dict(asked.refusing),
        "tracker_trouble": asked.trouble,
        "packages": asked.packages,
    }


def ask_peers(folder: Path, spec: JobSpec, context: Context, trackers: Sequence[str], packages: str = "") -> PeersAsked:
    """Ask them; `packages` is what is said of these when nobody can be asked.

    Raises `PackagesWrong` and `IndexUnreachable` for packages that cannot be had for them.
    """
    need = read_need(need_of(spec))
    try:
        with context.swarm(trackers) as swarm:
            most = how_many_to_ask(spec.need.peers)
            fitting = swarm.survey(need, measure=True, most_measured=most).peers
            others = swarm.survey(Need(kind=need.kind, also_taken=True))
            plan = swarm.packages(folder, spec) if spec.packages.wanted else None
    except (PackagesWrong, IndexUnreachable):
        raise
    except AxonError as error:
        return PeersAsked(None, error.message, packages=packages)
    if trouble := why_nobody_was_asked(others):
        return PeersAsked(None, trouble, packages=packages)
    if plan is None:
        return tally(spec.need, need, fitting, others.peers)
    return replace(tally(spec.need, need, fitting, others.peers, plan.why_not), packages=packages_text(plan.sets))


def why_nobody_was_asked(all_peers: Survey) -> str:
    """Empty where a tracker answered, or anybody showed a peer. A client that used a swarm once remembers nodes of its
    DHT: these may name peers that do not answer, which says nothing of the swarm that the job is for."""
    if all_peers.peers or any(one.source != DHT and not one.trouble for one in all_peers.answers):
        return ""
    there = "no tracker answers" if any(one.source != DHT for one in all_peers.answers) else "no tracker is known"
    return f"{there}, and {'no peer that the DHT names answers' if all_peers.silent else 'the DHT names no peer'}"


def with_packages(folder: Path, spec: JobSpec, bundle: Bundle, home: Path) -> tuple[Bundle, str]:
    """The bundle with the packages that it takes to try the job here, and these in words. Raises as `ask_peers`."""
    from axonp2p.client.packages.wheel_store import WheelStore
    from axonp2p.client.run.job_packages import resolve_for_here, with_wheels

    store = WheelStore(home / "wheels")
    wheels = resolve_for_here(spec, folder, store)
    if wheels is None:
        return bundle, "not for this computer: peers run Linux"
    return with_wheels(bundle, wheels.wheels, store), packages_text([wheels])


def packages_text(sets: Sequence[WheelSet]) -> str:
    """The number and size of the wheels that peers of each platform would be sent."""
    return "; ".join(f"{plural(len(one.wheels), 'wheel')}, {bytes_text(one.size)} for {one.platform}" for one in sets)


def tally(
    spec: NeedSpec,
    need: Need,
    fitting: Sequence[SeenPeer],
    others: Sequence[SeenPeer],
    also: Callable[[Capability], str] = lambda offer: "",
) -> PeersAsked:
    """Which of the peers that trackers show would take the job: those that they name for its need, and all.

    As many of `fitting` were measured as a job measures; of the others coordinates tell.
    `also`: why one that meets the need cannot take the job all the same.
    """
    max_rtt_s = spec.max_rtt / 1000

    def why_passed_over(peer: SeenPeer) -> str:
        convicted = _CONVICTED if peer.trust == "convicted" else ""
        guess = peer.rtt_s or peer.estimate_s or 0.0
        far = why_too_far(None if peer.state is PeerState.SILENT else guess, max_rtt_s)
        return convicted or peer.other_version or far or also(peer.offer)

    reasons = [why_passed_over(peer) for peer in fitting]
    takers = [peer for peer, reason in zip(fitting, reasons, strict=True) if not reason]
    refusing = Counter(filter(None, reasons))
    named = {peer.peer for peer in fitting}
    for peer in others:
        if peer.peer not in named:
            reason = peer.other_version or why_not(peer.offer, need)
            refusing[reason or "not known for long enough (uptime)"] += 1
    names = tuple(peer.name for peer in takers[:MOST_NAMES])
    return PeersAsked(len(takers), needed=spec.min_peers, names=names, refusing=+refusing)


def common_facts(need: NeedSpec, asked: PeersAsked) -> dict[str, str]:
    """The facts about peers, as text for people."""
    gpu = gpu_text(need, asked)
    return {
        "packages": asked.packages,
        "peers": peers_text(need, asked),
        "not taken by": counted(asked.refusing),
        "gpu": gpu,
    }


def peers_text(need: NeedSpec, asked: PeersAsked) -> str:
    """How many would take it, in words."""
    if asked.found is None:
        return f"{need.peers} wanted; nobody was asked: {asked.trouble}"
    more = ", ..." if asked.found > len(asked.names) else ""
    who = f" ({', '.join(asked.names)}{more})" if asked.names else ""
    if asked.found >= need.peers:
        return f"{need.peers} wanted, {asked.found} would take it now{who}"
    enough = asked.found >= need.min_peers
    verdict = "it can start with fewer" if enough else f"fewer than the {need.min_peers} that it needs"
    return f"{need.peers} wanted, only {asked.found} would take it now{who}: {verdict}"


def gpu_text(need: NeedSpec, asked: PeersAsked) -> str:
    """The advice for a job that asks for a GPU where no peer lends one; empty otherwise."""
    without = sum(count for reason, count in asked.refusing.items() if reason.startswith(NO_GPU))
    if not need.wants_gpu or asked.found or not without:
        return ""
    return f"no peer that was seen lends one{gpu_words(need.gpu_memory, need.gpu_capability)}: {WITHOUT_GPU}"
