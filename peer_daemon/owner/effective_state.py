"""From what the owner said and what the policy decided to what the daemon does and says (pure)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peer_daemon.control.status import State
from peer_daemon.idle.decision import Act, Decision, Readings, Why
from peer_daemon.idle.idle_settings import IdleSettings

NOTHING_WANTED = "no job wants this machine now"


@dataclass(frozen=True)
class StandingOrders:
    """The owner's orders that still hold."""

    paused: bool = False
    until: float | None = None
    """Unix seconds; None: until they say otherwise."""
    finishing: bool = False


@dataclass(frozen=True)
class EffectiveState:
    """The state of the daemon, and the sentence that says so."""

    state: State
    why: Why
    sentence: str
    act: Act
    takes_work: bool
    cores: int = 0
    """As in `Decision`."""
    until: float | None = None
    for_clients: str = ""
    """Why no work runs, for the clients of jobs: nothing of what the owner does with the machine."""


STANDBY_MB = 512
"""A worker that stands by is started while so much more memory is free than the owner keeps, in MiB, and dropped when
half of that is not."""


def may_stand_by(state: EffectiveState, readings: Readings, settings: IdleSettings, *, stands: bool) -> bool:
    """Whether the machine has room for a worker that waits for the next job. `stands`: whether one waits now."""
    room_mb = settings.keep_memory_free_mb + (STANDBY_MB // 2 if stands else STANDBY_MB)
    return (
        settings.standby
        and state.takes_work
        and not readings.on_battery
        and (readings.memory_free_mb is None or readings.memory_free_mb >= room_mb)
    )


def effective_state_of(
    decision: Decision, wanted: StandingOrders, *, no_sandbox: str, jobs: int, until_text: str = ""
) -> EffectiveState:
    """`no_sandbox` says why no job can run here, `jobs` how many do, `until_text` when a pause ends, for people."""
    state = _for_the_owner(decision, wanted, no_sandbox, jobs, until_text)
    lasting = f" until {until_text}" if until_text and state.why is Why.PAUSED else ""
    return replace(state, for_clients=_FOR_CLIENTS[state.why] + lasting)


_FOR_CLIENTS = {
    Why.FREE: "nothing else needs the machine",
    Why.BUSY: "its owner's programs need the processor",
    Why.PROGRAM: "a program that has the machine for itself runs",
    Why.IN_USE: "its owner lends it at other times",
    Why.FULL_SCREEN: "its owner lends it at other times",
    Why.MEMORY: "its owner's programs need the memory",
    Why.DISK: "its disk is almost full",
    Why.BATTERY: "it runs on battery",
    Why.HOT: "its processor is too hot",
    Why.HOURS: "it is outside the hours in which its owner lends it",
    Why.METERED: "its network costs by the byte",
    Why.NETWORK: "its owner's programs need the network",
    Why.PAUSED: "its owner paused it",
    Why.FINISHING: "its owner lets it finish this round, then pauses it",
    Why.NO_SANDBOX: "it has no sandbox for jobs",
}
"""Clients are strangers: names of programs, hours and figures stay with the owner."""


def _for_the_owner(
    decision: Decision, wanted: StandingOrders, no_sandbox: str, jobs: int, until_text: str
) -> EffectiveState:
    if no_sandbox:
        return EffectiveState("refused", Why.NO_SANDBOX, no_sandbox, Act.HAND_BACK, takes_work=False)
    if wanted.paused:
        sentence = f"paused by you until {until_text}" if until_text else "paused by you until you resume it"
        return EffectiveState("paused", Why.PAUSED, sentence, Act.HAND_BACK, takes_work=False, until=wanted.until)
    if decision.act is not Act.RUN:
        return EffectiveState("waiting", decision.why, decision.sentence, decision.act, takes_work=False)
    if wanted.finishing:
        sentence = f"finishing {_count(jobs)}, then pausing"
        return EffectiveState("finishing", Why.FINISHING, sentence, Act.RUN, takes_work=False, cores=decision.cores)
    if jobs:
        sentence = f"works on {_count(jobs)}: {decision.sentence}"
        return EffectiveState("training", decision.why, sentence, Act.RUN, takes_work=True, cores=decision.cores)
    return EffectiveState("ready", decision.why, NOTHING_WANTED, Act.RUN, takes_work=True, cores=decision.cores)


def _count(jobs: int) -> str:
    return "one job" if jobs == 1 else f"{jobs} jobs"
