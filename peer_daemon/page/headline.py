"""The first word about this peer and the sentence after it, alike in a terminal and on the page (pure).

And what keeps the peer from being of use and does not pass by itself: said large on the page, with what mends it.
"""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.sandbox.walls.diagnosis import FIXED_BY
from peer_daemon.control.status import State, Status
from peer_daemon.page.words import WORDS

NOT_FINDABLE = "NOT FINDABLE"


@dataclass(frozen=True)
class Headline:
    """`look`: whose sign and colour it has; `fix`: the command that puts it right, where there is one."""

    word: str
    sentence: str
    look: State
    fix: str = ""


def headline(status: Status) -> Headline:
    """The message that an owner must read first: a peer that nobody can find is not ready, whatever else holds."""
    if not status.findable and status.state in ("ready", "waiting"):
        fix = "axon-peer doctor" if status.network.trackers else "axon-peer run --tracker URL"
        return Headline(NOT_FINDABLE, f"nobody can send it work: {why_not_findable(status)}", "refused", fix)
    sentence, _, fix = status.sentence.partition(FIXED_BY)  # a sandbox's diagnosis names the command where it knows one
    return Headline(WORDS[status.state], sentence, status.state, fix)


def why_not_findable(status: Status) -> str:
    """In a clause, with the tracker's own trouble where one is known."""
    if not status.network.trackers:
        return "it knows no tracker, and no DHT node has taken its announcement"
    troubles = dict.fromkeys(tracker.trouble for tracker in status.network.trackers if tracker.trouble)
    told = f" ({'; '.join(troubles)})" if troubles else ""
    return f"no tracker and no DHT node has taken its announcement{told}"


@dataclass(frozen=True)
class Banner:
    """`kind`: "bad" (no work can come) or "warn" (less work comes). `fix`: a command, or empty; `or_else`: in words."""

    kind: str
    title: str
    text: str
    fix: str
    or_else: str = ""


def banners(status: Status) -> list[Banner]:
    """The worst first; empty as a rule."""
    found = []
    if status.state == "refused":
        fix = headline(status).fix
        found.append(
            Banner(
                "bad",
                f"{'No sandbox: t' if status.why == 'no sandbox' else 'T'}his computer cannot run jobs",
                "Strangers' code never runs here without a sandbox.",
                fix or "axon-peer doctor",
                "axon-peer doctor says what works and what does not." if fix else "It says what is missing.",
            )
        )
    if not status.findable:
        named = bool(status.network.trackers)
        found.append(
            Banner(
                "bad",
                "Not findable: nobody can send this peer work",
                f"{_capital(why_not_findable(status))}. It tries again by itself.",
                "axon-peer doctor" if named else "axon-peer run --tracker URL",
                "Is this computer online?" if named else "URL is what axon-tracker run prints.",
            )
        )
    elif status.network.reachable == "no" and not status.network.relays:
        found.append(
            Banner(
                "warn",
                "Unreachable: others cannot call this computer",
                "It is announced, but calls from outside do not arrive, and no relay passes them on yet.",
                "axon-peer doctor",
                f"Most often the router has to forward port {_port(status.network.address)} (TCP and UDP) to it.",
            )
        )
    return found


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _port(address: str) -> str:
    return address.rpartition(":")[2] or "7071"
