"""What keeps this peer from being of use and does not pass by itself: said large, with what mends it."""

from __future__ import annotations

from dataclasses import dataclass

from peer_daemon.control.status import Status
from peer_daemon.page.headline import headline, why_not_findable


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
