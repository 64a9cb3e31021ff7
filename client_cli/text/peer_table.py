"""The output of `axon peers`: a line a peer, a line a source, and the changes between two looks. Pure."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Mapping, Sequence

from axonp2p.client.queries import PeerState, SeenPeer, Survey
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.plain_text import columns, mebibytes_text, plural
from axonp2p.table.sightings import DHT, SourceAnswer
from client_cli.text.render import age_text

LEAST_ESTIMATES = 3
_HEADS = ("peer", "id", "state", "rtt", "cores", "memory", "GFLOPS", "free", "GPU", "trust", "row", "from")
_MORE_HEADS = ("disk", "up", "down", "data", "python", "address")
_NUMBERS = frozenset({"rtt", "cores", "memory", "GFLOPS", "disk", "up", "down"})
_MOST_IN_CELL = 40
"""Characters of a cell on a terminal, which may be narrow; --json has all."""


def survey_text(survey: Survey, *, wide: bool, width: int | None = None) -> str:
    """The tables; `wide` shows every capability and the addresses too.

    On a terminal of `width` columns a wider table continues below, each part with its peers; None: for a pipe,
    where a line is a peer.
    """
    marks = marks_of(survey.answers)
    fitting = max((answer.fitting for answer in survey.answers), default=0)
    parts = [_peers(survey.peers, marks, fitting, wide, width) if survey.peers else _nobody(survey)]
    if error := estimates_error(survey.peers):
        parts[-1] += f"; round trips guessed from coordinates are off by {error:.0%} (median)"
    if wide and survey.peers:
        parts.append(_packages(survey.peers, width))
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
    """The changes between two looks, a line each."""
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


def _peers(peers: Sequence[SeenPeer], marks: Mapping[str, str], fitting: int, wide: bool, width: int | None) -> str:
    heads = [*_HEADS, *(_MORE_HEADS if wide else ())]
    rows = [[*_line(peer, marks), *(_more(peer) if wide else [])] for peer in peers]
    free = sum(peer.state is PeerState.FREE for peer in peers)
    some = f"{len(peers)} of {fitting:,} peers" if fitting > len(peers) else plural(len(peers), "peer")
    star = "\n* measured through a relay: nobody can dial this peer" if any(peer.relay for peer in peers) else ""
    return f"{_fitted(heads, rows, width)}\n{some}, {free} free{star}"


def _fitted(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> str:
    """One table, or several below each other that each begin with the first column: who it is."""
    if width is not None:
        rows = [
            [cell if len(cell) <= _MOST_IN_CELL else f"{cell[: _MOST_IN_CELL - 1]}…" for cell in row] for row in rows
        ]
    widths = [max(len(line[index]) for line in [heads, *rows]) for index in range(len(heads))]
    parts: list[list[int]] = [[0]]
    for index in range(1, len(heads)):
        taken = sum(widths[column] + 2 for column in parts[-1])
        if width is not None and taken + widths[index] > width and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(index)
    return "\n\n".join(
        columns(
            [heads[index] for index in part],
            [[row[index] for index in part] for row in rows],
            right=[place for place, index in enumerate(part) if heads[index] in _NUMBERS],
        )
        for part in parts
    )


def _packages(peers: Sequence[SeenPeer], width: int | None) -> str:
    """Those that have the same ones in a paragraph: machines of one owner do."""
    alike: dict[str, list[str]] = {}
    for peer in peers:
        told = ", ".join(f"{name} {version}" for name, version in sorted(peer.offer.packages.items()))
        alike.setdefault(told or "none that it names", []).append(peer.name)
    lines = [f"packages of {', '.join(names)}: {told}" for told, names in alike.items()]
    return "\n".join(
        textwrap.fill(line, width, subsequent_indent="  ", break_on_hyphens=False) if width else line for line in lines
    )


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
        ", ".join(offer.datasets) or "-",
        offer.python,
        ", ".join(peer.addresses) or "-",
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
