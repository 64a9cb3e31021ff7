"""What `axon check` asks and answers for jobs of every kind: how many peers would take it now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axonp2p.client.packages.plan import WheelSet
from axonp2p.errors import AxonError, IndexUnreachable, PackagesWrong
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.spec import JobSpec, NeedSpec
from axonp2p.plain_text import bytes_text, plural
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
    packages: str = ""
    """What they would be sent of the packages that the job brings along; empty where it brings none."""
    without_packages: dict[str, str] = field(default_factory=dict)
    """Why peers that meet the need cannot have them, by name."""

    @property
    def too_few(self) -> bool:
        """Whether the job could not begin now."""
        return self.found is not None and self.found < self.needed


TryHere = Callable[[Path, Any, Bundle, Context, Callable[[], PeersAsked]], CheckAnswer]
"""Of a folder, its spec and its bundle; asks for peers when it has found no mistake. Raises the mistake."""


def in_order(folder: str, facts: dict[str, str], asked: PeersAsked, command: Command) -> str:
    """What people are told of a job without a mistake, with the commands that come next."""
    steps = [command("submit", folder)]
    if asked.found is None:
        steps.insert(0, command("swarm", "up"))
    told = pairs({name: fact for name, fact in facts.items() if fact}, indent="  ")
    verdict = "has no mistake, but too few peers would take it now" if asked.too_few else "is in order"
    return "\n".join([f"{folder} {verdict}.", told, "Next:", *(f"  {step}" for step in steps)])


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
        "packages": asked.packages,
        "without_packages": asked.without_packages,
    }


def ask_peers(folder: Path, spec: JobSpec, context: Context, trackers: Sequence[str], packages: str = "") -> PeersAsked:
    """Ask them; `packages` is what is said of these when nobody can be asked.

    Raises `PackagesWrong` and `IndexUnreachable` for packages that cannot be had for them.
    """
    need = spec.need
    try:
        with context.swarm(trackers) as swarm:
            seen = swarm.peers(folder)
            if not spec.packages.wanted:
                return PeersAsked(len(seen), needed=need.min_peers)
            plan = swarm.packages(folder)
    except (PackagesWrong, IndexUnreachable):
        raise
    except AxonError as error:
        return PeersAsked(None, error.message, packages=packages)
    reasons = {peer.name: plan.why_not(peer.offer) for peer in seen}
    without = {name: reason for name, reason in reasons.items() if reason}
    return PeersAsked(len(seen) - len(without), "", need.min_peers, packages_text(plan.sets), without)


def with_packages(folder: Path, spec: JobSpec, bundle: Bundle, context: Context) -> tuple[Bundle, str]:
    """The bundle with the packages that it takes to try the job here, and these in words. Raises as `ask_peers`."""
    from axonp2p.client.packages.wheel_store import WheelStore
    from axonp2p.client.run.job_packages import resolve_for_here, with_wheels

    context.say("brings the packages here (pip) ...")
    store = WheelStore(context.home / "wheels")
    wheels = resolve_for_here(spec, folder, store)
    if wheels is None:
        return bundle, "not for this computer: peers run Linux"
    return with_wheels(bundle, wheels, store), packages_text([wheels])


def packages_text(sets: Sequence[WheelSet]) -> str:
    """What peers of each platform would be sent."""
    return "; ".join(f"{plural(len(one.wheels), 'wheel')}, {bytes_text(one.size)} for {one.platform}" for one in sets)


def peers_text(need: NeedSpec, asked: PeersAsked) -> str:
    """The same in words."""
    if asked.found is None:
        return f"{need.peers} wanted; nobody was asked: {asked.trouble}"
    return _how_many(need, asked) + "".join(f"; {name} {reason}" for name, reason in asked.without_packages.items())


def _how_many(need: NeedSpec, asked: PeersAsked) -> str:
    assert asked.found is not None
    if asked.found >= need.peers:
        return f"{need.peers} wanted, {asked.found} would take it now"
    enough = asked.found >= need.min_peers
    verdict = "it can start with fewer" if enough else f"fewer than the {need.min_peers} that it needs"
    return f"{need.peers} wanted, only {asked.found} would take it now: {verdict}"
