"""What `axon peers` shows: a line a peer, a line a source, and the changes between two looks. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from axonp2p.client.queries import PeerState, SeenPeer, Survey
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.plain_text import columns, mebibytes_text, plural
from axonp2p.table.sightings import DHT, SourceAnswer
from client_cli.text.render import age_text

LEAST_ESTIMATES = 3
_RIGHT = (3, 4, 5, 6)


def survey_text(survey: Survey, *, wide: bool) -> str:
    """The tables; `wide` shows every capability and the addresses too."""
    marks = marks_of(survey.answers)
    fitting = max((answer.fitting for answer in survey.answers), default=0)
    parts = [_peers(survey.peers, marks, fitting, wide) if survey.peers else _nobody(survey)]
    if error := estimates_error(survey.peers):
        parts[-1] += f"; round trips guessed from coordinates are off by {error:.0%} (median)"
    parts += [_sources(survey.answers, marks)]
    if survey.silent:
        parts.append(_named_but_silent(survey.silent))
    return "\n\n".join(parts)


def marks_of(answers: Sequence[SourceAnswer]) -> dict[str, str]:
    """A short mark for each source: numbers for trackers, by name, and the DHT's own."""
    trackers = sorted({answer.source for answer in answers} - {DHT})
    return {source: str(number) for number, source in enumerate(trackers, start=1)} | {DHT: DHT}


def estimates_error(peers: Sequence[SeenPeer]) -> float | None:
    """How far guessed round trips are from measured ones (median, relative); None with fewer than three of both."""
    errors = [abs(peer.estimate_s / peer.rtt_s - 1) for peer in peers if peer.rtt_s and peer.estimate_s is not None]
    return statistics.median(errors) if len(errors) >= LEAST_ESTIMATES else None


def state_text(peer: SeenPeer) -> str:
    """A word, and why where there is a reason."""
    if peer.state is PeerState.REFUSING and peer.offer.refuses:
        return f"{peer.state}: {peer.offer.refuses}"
    return str(peer.state)


def changes(before: Survey, after: Survey) -> list[str]:
    """What became different between two looks, a line each."""
    old = {peer.peer: peer for peer in before.peers}
    new = {peer.peer: peer for peer in after.peers}
    lines = [f"{peer.name} is there: {state_text(peer)}" for key, peer in new.items() if key not in old]
    lines += [f"{peer.name} is gone" for key, peer in old.items() if key not in new]
    lines += [
        f"{new[key].name}: {was}, now {state_text(new[key])}"
        for key, peer in old.items()
        if key in new and (was := state_text(peer)) != state_text(new[key])
    ]
    troubles = {answer.source: answer.trouble for answer in before.answers}
    for answer in after.answers:
        if bool(troubles.get(answer.source)) != bool(answer.trouble):
            lines.append(f"{answer.source}: {answer.trouble or 'answers'}")
    return lines


def _nobody(survey: Survey) -> str:
    heard = [answer for answer in survey.answers if not answer.trouble]
    alive = max((answer.alive for answer in heard), default=0)
    if alive:
        return f"{plural(alive, 'peer')} known, none meets this need.  What there is: axon peers"
    return "No peer is known.  Lend a machine: axon-peer run --tracker URL"


def _peers(peers: Sequence[SeenPeer], marks: Mapping[str, str], fitting: int, wide: bool) -> str:
    heads = ["peer", "id", "state", "rtt", "cores", "memory", "GFLOPS", "free", "GPU", "trust", "row", "from"]
    more = ["disk", "up", "down", "address", "data", "python", "packages"] if wide else []
    rows = [[*_line(peer, marks), *(_more(peer) if wide else [])] for peer in peers]
    free = sum(peer.state is PeerState.FREE for peer in peers)
    table = columns([*heads, *more], rows, right=(*_RIGHT, 12, 13, 14) if wide else _RIGHT)
    some = f"{len(peers)} of {fitting:,} peers" if fitting > len(peers) else plural(len(peers), "peer")
    star = "\n* measured through a relay: nobody can dial this peer" if any(peer.relay for peer in peers) else ""
    return f"{table}\n{some}, {free} free{star}"


def _line(peer: SeenPeer, marks: Mapping[str, str]) -> list[str]:
    offer = peer.offer
    return [
        peer.name,
        short(peer.peer),
        state_text(peer),
        _rtt(peer),
        str(offer.cores),
        mebibytes_text(offer.memory_mb),
        f"{offer.gflops:.0f}",
        f"{offer.free} of {offer.slots}",
        ", ".join(f"{gpu.name}{' (taken)' if gpu.taken is True else ''}" for gpu in offer.gpus) or "-",
        peer.trust,
        "-" if peer.age_s is None else age_text(peer.age_s),
        _from(peer, marks),
    ]


def _rtt(peer: SeenPeer) -> str:
    if peer.rtt_s is not None:
        return f"{peer.rtt_s * 1000:.1f} ms{' *' if peer.relay else ''}"
    return "-" if peer.estimate_s is None else f"~{peer.estimate_s * 1000:.0f} ms"


def _from(peer: SeenPeer, marks: Mapping[str, str]) -> str:
    newest = [marks.get(source, source) for source in peer.sources]
    older = [f"{marks.get(source, source)} (older)" for source in peer.stale]
    return " ".join([*sorted(newest), *sorted(older)]) or "-"


def _more(peer: SeenPeer) -> list[str]:
    offer = peer.offer
    return [
        mebibytes_text(offer.disk_mb),
        f"{offer.upload_mbit} Mbit/s" if offer.upload_mbit else "-",
        f"{offer.download_mbit} Mbit/s" if offer.download_mbit else "-",
        ", ".join(peer.addresses) or "-",
        ", ".join(offer.datasets) or "-",
        offer.python,
        ", ".join(f"{name} {version}" for name, version in sorted(offer.packages.items())) or "-",
    ]


def _sources(answers: Sequence[SourceAnswer], marks: Mapping[str, str]) -> str:
    rows = [
        [
            f"{marks[answer.source]}{'' if answer.source == DHT else f' = {answer.source}'}",
            "no" if answer.trouble else f"{answer.seconds * 1000:.0f} ms",
            "-" if answer.trouble else str(len(answer.rows)),
            "-" if answer.trouble or answer.source == DHT else str(answer.fitting),
            "-" if answer.trouble or answer.source == DHT else str(answer.alive),
            answer.trouble.removeprefix(f"{answer.source} ")
            or (f"{answer.dropped} rows of it were not to be believed" if answer.dropped else ""),
        ]
        for answer in sorted(answers, key=lambda answer: (answer.source == DHT, answer.source))
    ]
    return columns(["from", "answered", "shown", "fit", "known", ""], rows, right=(1, 2, 3, 4))


def _named_but_silent(silent: Mapping[PeerId, str]) -> str:
    lines = [f"  {short(peer)}   {reason}" for peer, reason in sorted(silent.items())]
    return "\n".join(["The DHT names these too, but they did not answer:", *lines])
