"""What `axon check` asks and answers for jobs of every kind: how many peers would take it now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from axonp2p.errors import AxonError
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.spec import JobSpec, NeedSpec, need_of
from axonp2p.peers.capability import read_need
from client_cli.context import Context
from client_cli.text.kind_text import Command
from client_cli.text.render import pairs


@dataclass(frozen=True)
class CheckAnswer:
    """A job without a mistake so far: as text for people, and as data for programs."""

    text: str
    data: dict[str, Any]
    asked: PeersAsked


@dataclass(frozen=True)
class PeersAsked:
    """What the trackers said."""

    found: int | None
    """Peers that would take it now; None when no tracker could be asked."""
    trouble: str = ""
    """Why none could."""
    needed: int = 0
    """With fewer the job does not begin."""

    @property
    def too_few(self) -> bool:
        """Whether the job could not begin now."""
        return self.found is not None and self.found < self.needed


TryHere = Callable[[str, Any, Bundle, Context, Callable[[], PeersAsked]], CheckAnswer]
"""Of a job as it was named on the command line, its spec and its bundle; asks for peers when it has found no mistake.
Raises the mistake."""


def in_order(given: str, facts: dict[str, str], asked: PeersAsked, command: Command) -> str:
    """What people are told of a job without a mistake, with the commands that come next."""
    steps = [command("submit", given)]
    if asked.found is None:
        steps.insert(0, command("swarm", "up"))
    told = pairs({name: fact for name, fact in facts.items() if fact}, indent="  ")
    verdict = "has no mistake, but too few peers would take it now" if asked.too_few else "is in order"
    return "\n".join([f"{given} {verdict}.", told, "Next:", *(f"  {step}" for step in steps)])


def common_data(spec: JobSpec, files: int, bundle_bytes: int, asked: PeersAsked) -> dict[str, Any]:
    """What `axon check --json` says of jobs of every kind."""
    return {
        "ok": True,
        "name": spec.name,
        "files": files,
        "bundle_bytes": bundle_bytes,
        "peers_wanted": spec.need.peers,
        "peers_found": asked.found,
        "tracker_trouble": asked.trouble,
    }


def ask_peers(spec: JobSpec, context: Context, trackers: Sequence[str]) -> PeersAsked:
    """Ask them."""
    try:
        with context.swarm(trackers) as swarm:
            return PeersAsked(len(swarm.peers(read_need(need_of(spec)))), needed=spec.need.min_peers)
    except AxonError as error:
        return PeersAsked(None, error.message)


def peers_text(need: NeedSpec, asked: PeersAsked) -> str:
    """The same in words."""
    if asked.found is None:
        return f"{need.peers} wanted; nobody was asked: {asked.trouble}"
    if asked.found >= need.peers:
        return f"{need.peers} wanted, {asked.found} would take it now"
    enough = asked.found >= need.min_peers
    verdict = "it can start with fewer" if enough else f"fewer than the {need.min_peers} that it needs"
    return f"{need.peers} wanted, only {asked.found} would take it now: {verdict}"
