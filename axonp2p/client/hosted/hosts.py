"""Which of the known trackers carry jobs on, and which jobs of this client they hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import msgspec

from axonp2p.client.hosted.hosted_mark import HostedMark, OtherHost
from axonp2p.client.leasing.hiring import Means
from axonp2p.errors import AxonError, JobFileWrong, Refused, TrackerUnreachable, Unreachable
from axonp2p.hosting.caller import HostLine, ask_offer
from axonp2p.hosting.host import Host, job_key
from axonp2p.hosting.messages import HostedJob, HostJob, HostOffer
from axonp2p.jobs.bundle import Bundle
from axonp2p.logs import get_logger
from axonp2p.table.side_by_side import ask_all
from axonp2p.table.tracker_lines import reason_of
from axonp2p.transport.http.http_caller import HttpCaller

log = get_logger(__name__)

WITHIN_S = 8.0
"""A tracker that takes longer to say what it hosts is passed over."""
TRIES = 3
"""How often a bundle is gone on with at a host after its line was cut."""


@dataclass(frozen=True)
class FoundJob:
    """A job of this client at a host."""

    host: Host
    job: HostedJob
    copy_at: Host | None = None
    """Another that keeps a copy of it."""
    former: Host | None = None
    """Another that it was taken from, and that still holds it."""


@dataclass(frozen=True)
class FoundJobs:
    """All that was found, and who could not be asked."""

    jobs: list[FoundJob]
    silent: list[str]
    """Each with its reason."""


async def find_jobs(means: Means, *, all_of_them: bool = False) -> FoundJobs:
    """Ask every known tracker, side by side; with `all_of_them`, one that is slow beside others is waited for too."""
    offers, silent = await _offers(means, all_of_them=all_of_them)
    jobs: list[FoundJob] = []

    async def ask(host: Host) -> None:
        try:
            async with asyncio.timeout(WITHIN_S), await HostLine.open(means.key, host) as line:
                jobs.extend(FoundJob(host, job) for job in await line.jobs())
        except (AxonError, TimeoutError) as error:
            silent.append(f"{host.called}: {error.in_a_line if isinstance(error, AxonError) else 'it is too slow'}")

    await asyncio.gather(*(ask(host) for host, _ in offers))
    return FoundJobs(carried(jobs), silent)


def carried(found: Iterable[FoundJob]) -> list[FoundJob]:
    """Each job once, at the host that carries it on (pure); with its copy's host only where no other has it.

    Where several say that they carry one on, and none of them that it took over, all of these are told.
    """
    by_job: dict[str, list[FoundJob]] = {}
    for one in found:
        by_job.setdefault(one.job.job, []).append(one)
    told = []
    for several in by_job.values():
        over, hosts, copies = (
            [one for one in several if one.job.role == role] for role in ("took over", "host", "copy")
        )
        copy_at = copies[0].host if copies else None
        if over and hosts:
            told.append(replace(over[0], former=hosts[0].host))
        else:
            told += [replace(one, copy_at=copy_at) for one in over or hosts] or copies[:1]
    return told


async def hand_over(
    means: Means, job: str, bundle: Bundle, sent: Callable[[int], None] = lambda size: None
) -> HostedMark:
    """Give the job to the first tracker that takes it, those with room before the others; where it is now.

    `sent` hears of each piece. Raises `Refused` or `TrackerUnreachable` naming why each tracker did not take it, and
    `JobFileWrong` when a file has changed.
    """
    offers, reasons = await _offers(means)
    asked = HostJob(job=job, blob=bundle.blob.name, key=job_key(means.key, job).seed)
    for host, _ in sorted(offers, key=lambda found: not found[1].free):
        try:
            await _give(means, host, asked, bundle, sent)
        except JobFileWrong:
            raise
        except AxonError as error:
            reasons.append(f"{host.called}: {error.in_a_line}")
        else:
            return HostedMark(tracker=str(host.address), host=host.peer)
    kind = Refused if offers else TrackerUnreachable
    raise kind(
        "no tracker carries the job on",
        cause="; ".join(reasons) or "none is known",
        fix="name another tracker, or submit it without handing it over, and leave this computer on",
    )


async def hand_to_second(means: Means, job: str, bundle: Bundle, mark: HostedMark) -> HostedMark:
    """Have the next tracker that can keep a copy of the job at the host of `mark`; who does, or why nobody.

    It gets the bundle and the job's key too, and reads at the host with that.
    """
    offers, reasons = await _offers(means)
    key = job_key(means.key, job).seed
    asked = HostJob(job=job, blob=bundle.blob.name, key=key, copies=mark.host)
    for other, _ in sorted(offers, key=lambda found: not found[1].free):
        if other.peer == mark.host:
            continue
        try:
            await _give(means, other, asked, bundle, lambda size: None)
        except AxonError as error:
            reasons.append(f"{other.called}: {error.in_a_line}")
        else:
            return msgspec.structs.replace(mark, standby=OtherHost(tracker=str(other.address), host=other.peer))
    return msgspec.structs.replace(mark, without_copy="; ".join(reasons) or "no other tracker is known")


async def _give(means: Means, host: Host, asked: HostJob, bundle: Bundle, sent: Callable[[int], None]) -> None:
    for tries_left in reversed(range(TRIES)):
        try:
            async with await HostLine.open(means.key, host) as line:
                await line.hand_over(asked, bundle.blob, bundle.piece, sent)
            return
        except Unreachable as error:
            if not tries_left:
                raise
            log.info("cut off from the host, which keeps what it has", host=host.called, reason=error.in_a_line)


async def _offers(means: Means, *, all_of_them: bool = False) -> tuple[list[tuple[Host, HostOffer]], list[str]]:
    """The offers of each tracker, those that are asked first before others; and why some offer nothing."""
    trackers = means.table.trackers

    async def ask(line: HttpCaller) -> tuple[Host, HostOffer] | str:
        try:
            async with asyncio.timeout(WITHIN_S):
                offer = await trackers.ask(line, ask_offer)
        except TimeoutError:
            return _no_answer(line)
        except AxonError as error:
            return reason_of(line, error)
        return Host(line.address, offer.host), offer

    found = await ask_all(
        trackers.trusted(),
        ask,
        is_answer=lambda said: not all_of_them and not isinstance(said, str),
        late=lambda line, seconds: _no_answer(line),
    )
    return [one for one in found if not isinstance(one, str)], [one for one in found if isinstance(one, str)]


def _no_answer(line: HttpCaller) -> str:
    return f"{line.called}: it does not answer"
