"""From what was found to what is wrong, and what mends it (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from axonp2p.errors import KeyFileUnsafe, PortTaken, SandboxMissing, SettingsError
from axonp2p.findings import Check, FindingState, failed, ok, warn
from axonp2p.jobs.kinds import KINDS
from axonp2p.plain_text import plural
from axonp2p.sandbox.attacks.attack import Tried
from axonp2p.sandbox.limits import Priority
from axonp2p.sandbox.walls.diagnosis import FIXED_BY
from axonp2p.table.tracker_checks import TrackerFacts, tracker_checks
from peer_daemon.doctor.facts import ContainFacts, MachineFacts, PeerFacts, PortFacts
from peer_daemon.gpus.gpu_lending import checks_of_gpus
from peer_daemon.lending.offer import allowed_kinds, why_not_held
from peer_daemon.page.words import mebibytes

LITTLE_MEMORY_MB = 2048
_LANDLOCK = "a kernel from 5.13 on, with landlock among lsm= at boot"
_TURNS: dict[Priority, str] = {
    "idle": "jobs run when no other program wants to (SCHED_IDLE, nice 19, idle I/O)",
    "low": "jobs have a turn a tenth as often as your programs (nice 10)",
    "normal": "jobs have their turns as your programs have, since the settings say so",
}
_KEEP_THE_CARD = "gpu = false under [peer] in config.toml, until it is mended; please report it"
_DO_NOT_LEND = "do not lend this machine: axon-peer pause; axon-peer doctor --verbose shows more; please report it"


def checks_of(facts: PeerFacts, *, verbose: bool = False) -> list[Check]:
    """Every check, in the order in which people should read them; `verbose`: a line an attack, too."""
    return [
        *_machine(facts.machine),
        *_contain(facts.contain, verbose),
        *_kinds(facts.contain, facts.machine.kinds),
        *_gpus(facts.machine, facts.contain),
        *_senses(facts.senses),
        *_ports(facts.ports),
        *_trackers(facts.trackers),
    ]


def _machine(machine: MachineFacts) -> Iterable[Check]:
    missing = [name for name, version in machine.versions.items() if not version]
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items() if version)
    if missing:
        fix = f"pip install {' '.join(missing)}"
        yield warn("versions", f"{versions}; missing: {', '.join(missing)}; few jobs fit then", fix)
    else:
        yield ok("versions", versions)
    if machine.key.text:
        yield failed("key", KeyFileUnsafe(machine.key.text, fix=machine.key.fix))
    if machine.settings.text:
        yield failed("settings", SettingsError(machine.settings.text, fix=machine.settings.fix))
    else:
        yield ok("settings", f"sound ({machine.home}/config.toml, the environment, the defaults)")
    disk, memory = mebibytes(machine.disk_free_mb), mebibytes(machine.memory_mb)
    room = f"{plural(machine.cores, 'core')}, {memory} memory, {disk} free at {machine.home}"
    if machine.disk_free_mb < machine.keep_disk_free_mb:
        fix = "make room, or: keep-disk-free-mb in config.toml, or another folder with --home"
        text = f"{room}; no job begins below {mebibytes(machine.keep_disk_free_mb)}"
        yield Check(FindingState.FAIL, "room", text, fix)
    elif machine.memory_mb < LITTLE_MEMORY_MB:
        yield warn("room", f"{room}; few jobs fit into half of that", "axon-peer limits --memory SIZE")
    else:
        yield ok("room", room)


def _contain(contain: ContainFacts, verbose: bool) -> Iterable[Check]:
    if contain.no_sandbox:
        cause, _, fix = contain.no_sandbox.partition(FIXED_BY)
        yield failed("sandbox", SandboxMissing("no job can be locked up here, so none runs", cause=cause, fix=fix))
    else:
        yield ok("sandbox", "a job can be locked up here (bubblewrap)")
    if contain.seccomp.text:
        yield Check(FindingState.FAIL, "seccomp", contain.seccomp.text, contain.seccomp.fix, SandboxMissing.code)
    else:
        yield ok("seccomp", "a filter lets through only the system calls that training needs")
    if contain.landlock:
        yield ok("landlock", f"a second wall around files, version {contain.landlock}")
    else:
        text = "this kernel has no Landlock; the sandbox's mounts and the filter of system calls are the only walls"
        yield warn("landlock", text, _LANDLOCK)
    yield ok("limits", contain.holds)
    if contain.no_idle:
        text = f"jobs cannot be put behind your programs: {contain.no_idle}"
        yield Check(
            FindingState.FAIL, "priority", text, "let this user lower its own priority (sched_setscheduler, ionice)"
        )
    else:
        yield ok("priority", _TURNS[contain.priority])
    if contain.attempts:
        yield from _wall(contain.attempts, verbose)


def _kinds(contain: ContainFacts, chosen: Sequence[str]) -> Iterable[Check]:
    """Which kinds of job run here, and why not the others."""
    if contain.no_sandbox:
        return  # then none does, which was said
    allowed = allowed_kinds(chosen)
    lent = [kind.name for kind in allowed if not why_not_held(kind, contain.landlock)]
    if lent:
        yield ok("kinds", f"jobs of these kinds run here: {', '.join(lent)}")
    for kind in KINDS.values():
        why = why_not_held(kind, contain.landlock)
        if kind not in allowed:
            yield ok("kinds", f"no {kind.name} job runs here: the owner allows {', '.join(chosen)} only")
        elif why:
            state = FindingState.WARN if lent else FindingState.FAIL
            yield Check(state, "kinds", f"no {kind.name} job runs here: {why}", _LANDLOCK)


def _gpus(machine: MachineFacts, contain: ContainFacts) -> Iterable[Check]:
    yield from checks_of_gpus(machine.gpus, allowed=machine.lends_gpu, no_power_limit=machine.no_power_limit)
    if contain.no_cuda:
        yield Check(FindingState.FAIL, "gpu", f"no job can compute on the card: {contain.no_cuda}", _KEEP_THE_CARD)


def _wall(attempts: Sequence[Tried], verbose: bool) -> Iterable[Check]:
    broken = [attempt for attempt in attempts if not attempt.held]
    tried = plural(len(attempts), "attack")
    if not broken:
        yield ok("wall", f"it holds: no file, program, network or right of yours is within a job's reach ({tried})")
    elif not verbose:
        text = "; ".join(f"{one.tries}: {one.said}" for one in broken)
        what = f"{len(broken)} of {tried} got through or could not be made"
        yield Check(FindingState.FAIL, "wall", f"{what}: {text}", _DO_NOT_LEND)
    if verbose:
        for one in attempts:
            state, fix = (FindingState.OK, "") if one.held else (FindingState.FAIL, _DO_NOT_LEND)
            yield Check(state, f"wall, {one.name}", f"{one.tries}: {one.said}", fix)


def _senses(senses: Sequence[tuple[str, bool, str]]) -> Iterable[Check]:
    read = [name for name, can, _ in senses if can]
    yield ok("idle", f"whether this machine is free is read from: {', '.join(read)}")
    for name, can, sentence in senses:
        if not can:
            yield ok("idle", f"{name} is not told here: {sentence}")


def _ports(ports: PortFacts) -> Iterable[Check]:
    if ports.running:
        yield ok("daemon", ports.running)
        if ports.reachable == "no" and ports.relays:
            text = f"others cannot call this peer, but reach it through {' and '.join(ports.relays)}"
            yield ok("reachable", f"{text}; forwarding a port on the router would be faster")
        elif ports.reachable == "no":
            port = ports.listen.rpartition(":")[2]
            fix = f"forward TCP and UDP {port} on the router, and let them in: sudo ufw allow {port}"
            yield warn("reachable", "others cannot call this peer, and it holds no relay yet", fix)
        elif ports.reachable == "yes":
            yield ok("reachable", "others can call this peer")
        return
    yield ok("daemon", "no peer runs here now")
    if ports.tcp:
        host = ports.listen.rpartition(":")[0]
        fix = f"axon-peer run --listen {host}:0    (takes a free port)"
        yield failed("port", PortTaken(f"nothing can listen on {ports.listen}", cause=ports.tcp, fix=fix))
    elif ports.udp:
        text = f"UDP {ports.listen} is not to be had ({ports.udp}); the DHT node takes another port"
        yield warn("port", text, "end the program that has it, or choose another port for both: --listen")
    else:
        yield ok("port", f"{ports.listen} is free, TCP and UDP")
    if ports.page_port:
        text = f"{ports.page} is not to be had ({ports.page_port}); the status page takes another port"
        yield warn("page", text, 'page = "127.0.0.1:PORT" in config.toml')
    else:
        yield ok("page", f"{ports.page} is free" if ports.page else 'no status page is wanted (page = "")')


def _trackers(trackers: Sequence[TrackerFacts]) -> Iterable[Check]:
    if not trackers:
        yield ok("trackers", "none is known: the local network and the DHT are asked instead")
        return
    yield from tracker_checks(trackers)
