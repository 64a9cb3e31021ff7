"""From what the owner said and what the policy decided to what the daemon does and says (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from peer_daemon.control.status import State
from peer_daemon.idle.decision import Act, Decision, Why

NOTHING_WANTED = "no job wants this machine now"


@dataclass(frozen=True)
class StandingOrders:
    """What the owner said that still holds."""

    paused: bool = False
    until: float | None = None
    """Unix seconds; None: until they say otherwise."""
    finishing: bool = False


@dataclass(frozen=True)
class EffectiveState:
    """What the daemon does, and how it says so."""

    state: State
    why: Why
    sentence: str
    act: Act
    takes_work: bool
    cores: int = 0
    """As in `Decision`."""
    until: float | None = None


def effective_state_of(
    decision: Decision, wanted: StandingOrders, *, no_sandbox: str, jobs: int, until_text: str = ""
) -> EffectiveState:
    """`no_sandbox` says why no job can run here, `jobs` how many do, `until_text` when a pause ends, for people."""
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
