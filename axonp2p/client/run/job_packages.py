"""The files that each peer of a job is sent: the bundle, and with it the packages of the job for its platform.

Peers of one platform pass the same pieces on to each other, so a job has as many bundles as its peers have platforms:
one, as a rule. The resolved packages stand in wheels.json, so every life of a job brings the same.

A host runs no pip for a stranger, since what a job names could lead anywhere in the host's network. So the wheels of
a job that is handed over travel to its host in the bundle, with the plan beside them, and lie there as in a store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from packaging.requirements import Requirement

from axonp2p.blobs.manifest import MOST_FILES
from axonp2p.client.events.events import PackagesResolved
from axonp2p.client.leasing.hiring import Means
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.packages.plan import PLAN_FILE, PackagePlan, PlannedWheel, WheelSet, sets_to_resolve
from axonp2p.client.packages.wheel_store import WheelStore
from axonp2p.client.run.sending import Sending
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.disk_errors import not_writable
from axonp2p.errors import AxonError, JobFileWrong, MalformedMessage, PackagesWrong
from axonp2p.files import write_whole
from axonp2p.jobs.bundle import Bundle, hashed_file
from axonp2p.jobs.file_names import WHEELS_FOLDER
from axonp2p.jobs.packages_of_peers import OF_THE_PEER
from axonp2p.jobs.spec import JobSpec, need_of
from axonp2p.logs import get_logger
from axonp2p.peers.capability import Capability, read_capability
from axonp2p.peers.selection import MOST_CANDIDATES
from axonp2p.wheels.platforms import own_platform
from axonp2p.wire.json_form import decode_json

log = get_logger(__name__)

_NO_PLATFORM = ""


class JobPackages:
    """One life's. `resolve` comes first; without `[packages]` it does nothing."""

    def __init__(self, means: Means, journal: JobJournal, spec: JobSpec, bundle: Bundle) -> None:
        self._means = means
        self._journal = journal
        self._spec = spec
        self._bundle = bundle
        self._brought = was_brought(journal.folder)
        self._store = WheelStore(journal.folder.bundle / WHEELS_FOLDER) if self._brought else own_store(journal.folder)
        self._plan = PackagePlan()
        self._sendings: dict[str, Sending] = {}
        """By platform; the empty one: for peers that lack no package."""

    @property
    def sent_bytes(self) -> int:
        """Bytes of pieces that left this machine."""
        return sum(sending.sent_bytes for sending in self._sendings.values())

    @property
    def member_bytes(self) -> int:
        """Bytes of pieces that peers had from each other."""
        return sum(sending.member_bytes for sending in self._sendings.values())

    async def resolve(self) -> None:
        """Have all wheels here. Raises `PackagesWrong`, `IndexUnreachable`, and `SettingsError` of a full disk."""
        if not self._spec.packages.wanted:
            return
        kept = await asyncio.to_thread(self._kept)
        if kept is None and self._brought:
            raise PackagesWrong(
                "the packages that the job was handed over with are not whole here", fix="hand the job over again"
            )
        self._plan = kept or await _resolve_and_keep(
            self._means, self._spec, self._journal.folder, self._store, self._tell
        )
        for one in kept.sets if kept else []:
            self._tell(one, 0.0)

    def why_not(self, offer: Capability) -> str:
        """Why a peer cannot have the packages; empty when it can, or there are none."""
        return self._plan.why_not(offer) if self._spec.packages.wanted else ""

    async def deliver(self, rank: int, lease: Lease) -> str:
        """See to it that one peer gets the bundle with its packages; why it did not. Raises as `Sending.deliver`."""
        try:
            sending = await self._sending_for(read_capability(lease.row.capability or {}))
        except MalformedMessage as error:
            return error.in_a_line
        return await sending.deliver(rank, lease)

    async def _sending_for(self, offer: Capability) -> Sending:
        wheels = self._plan.for_offer(offer) if self._spec.packages.wanted else None
        key = wheels.platform if wheels else _NO_PLATFORM
        if key not in self._sendings:
            bundle = await asyncio.to_thread(self._with, wheels) if wheels else self._bundle
            # While it was made, another peer of that platform may have come to the same.
            self._sendings.setdefault(key, Sending(bundle, self._means.clock, self._journal.tell))
        return self._sendings[key]

    def _with(self, wheels: WheelSet) -> Bundle:
        return with_wheels(self._bundle, wheels.wheels, self._store)

    def _kept(self) -> PackagePlan | None:
        """The packages that an earlier life of the job, or its former host, resolved, if all of it is still here."""
        folder = self._journal.folder
        try:
            plan = decode_json((brought_plan(folder) if self._brought else folder.wheels).read_bytes(), PackagePlan)
        except (OSError, msgspec.DecodeError):
            return None
        return plan if all(self._store.has(wheel) for one in plan.sets for wheel in one.wheels) else None

    def _tell(self, found: WheelSet, seconds: float) -> None:
        self._journal.tell(
            PackagesResolved(
                platform=found.platform,
                wheels=[wheel.bundled.title for wheel in found.wheels],
                bytes=found.size,
                given=found.given,
                seconds=seconds,
            )
        )


def own_store(folder: JobFolder) -> WheelStore:
    """The wheels of the home in which the job's folder lies."""
    return WheelStore(folder.path.parent.parent / "wheels")


def brought_plan(folder: JobFolder) -> Path:
    """Where the plan of a job lies that was handed over to this host with its packages."""
    return folder.bundle / WHEELS_FOLDER / PLAN_FILE


def was_brought(folder: JobFolder) -> bool:
    """Whether it was; the bundle of a job that was submitted here has no such file."""
    return brought_plan(folder).is_file()


async def with_plan(means: Means, spec: JobSpec, folder: JobFolder, bundle: Bundle) -> Bundle:
    """The bundle for a host: the packages of the job beside its files, for the platforms of the peers that are there.

    They are kept for this computer too, to which the job may come back. Raises as `resolve_for_peers`, `JobFileWrong`,
    and `SettingsError` of a full disk.
    """
    store = own_store(folder)
    plan = await _resolve_and_keep(means, spec, folder, store)
    wheels = {wheel.sha256: wheel for one in plan.sets for wheel in one.wheels}
    whole = await asyncio.to_thread(with_wheels, bundle, [*wheels.values()], store)
    plan_file = await asyncio.to_thread(hashed_file, f"{WHEELS_FOLDER}/{PLAN_FILE}", folder.wheels)
    return Bundle([*whole.files, plan_file])


async def _resolve_and_keep(
    means: Means,
    spec: JobSpec,
    folder: JobFolder,
    store: WheelStore,
    told: Callable[[WheelSet, float], None] = lambda found, seconds: None,
) -> PackagePlan:
    plan = await resolve_for_peers(means, spec, folder.bundle, store, told)
    try:
        await asyncio.to_thread(write_whole, folder.wheels, msgspec.json.encode(plan))
    except OSError as error:
        raise not_writable(folder.path, error) from error
    return plan


async def resolve_for_peers(
    means: Means,
    spec: JobSpec,
    folder: Path,
    store: WheelStore,
    told: Callable[[WheelSet, float], None] = lambda found, seconds: None,
) -> PackagePlan:
    """The packages for the peers that the table shows now; `told` hears of each set, and how long it took.

    `folder` is the job's. Raises `IndexUnreachable`, and `PackagesWrong` when there are none for any of the platforms:
    one alone may be what a single row says.
    """
    from axonp2p.client.packages.resolving import resolve

    own = own_platform()
    sets: list[WheelSet] = []
    wrong: PackagesWrong | None = None
    for wanted in sets_to_resolve(await _offers(means, spec), spec.packages.install, (own, _own()) if own else None):
        began = means.clock.monotonic()
        try:
            found = await asyncio.to_thread(resolve, wanted, spec.packages, folder, store)
        except PackagesWrong as error:
            log.warning("no packages for some peers", platform=wanted.platform, reason=error.in_a_line)
            wrong = wrong or error
            continue
        sets.append(found)
        told(found, means.clock.monotonic() - began)
    if wrong is not None and not sets:
        raise wrong
    return PackagePlan(install=spec.packages.install, sets=sets)


def resolve_for_here(spec: JobSpec, folder: Path, store: WheelStore) -> WheelSet | None:
    """The packages to try the job on this computer; None where no peer's wheels run. Blocks, and raises the same."""
    from axonp2p.client.packages.resolving import resolve

    own = own_platform()
    wanted = WheelSet(platform=str(own), given=_own())
    return resolve(wanted, spec.packages, folder, store) if own else None


def _own() -> dict[str, str]:
    return {name: _own_version(name) for name in OF_THE_PEER}


def _own_version(package: str) -> str:
    """Of a client without torch: the least that Axon asks for, which is what its peers have been tried with."""
    from importlib.metadata import PackageNotFoundError, requires, version

    try:
        return version(package)
    except PackageNotFoundError:
        asked = next(one for one in map(Requirement, requires("axonp2p") or ()) if one.name == package)
        return next(part.version for part in asked.specifier if part.operator == ">=")


async def _offers(means: Means, spec: JobSpec) -> list[Capability]:
    """Of the peers that the table shows for this job now, busy ones too: of as many as a search to hire looks for."""
    try:
        sight = await means.table.find({**need_of(spec), "also_taken": True}, MOST_CANDIDATES, enough=spec.need.peers)
    except AxonError:
        return []  # the search for peers says what is wrong
    found = []
    for seen in sight.rows:
        with suppress(MalformedMessage):
            found.append(read_capability(seen.row.capability or {}))
    return found


def with_wheels(bundle: Bundle, wheels: Sequence[PlannedWheel], store: WheelStore) -> Bundle:
    """The bundle with these wheels beside its files; it reads them all. Raises `JobFileWrong`."""
    if len(bundle.files) + len(wheels) > MOST_FILES:
        raise JobFileWrong(
            f"{len(bundle.files)} files and {len(wheels)} wheels; a job may have {MOST_FILES} together",
            fix="pack the data into fewer files",
        )
    more = [hashed_file(wheel.bundled.path, store.path(wheel)) for wheel in wheels]
    return Bundle([*bundle.files, *more])
