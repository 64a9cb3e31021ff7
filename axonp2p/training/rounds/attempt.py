"""One attempt at one round: who has finished its steps, who has reported, who is late. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from axonp2p.errors import JobFailed
from axonp2p.tensors.coding import EXACT
from axonp2p.training.deadlines import LEAST_REST_S, LEAST_STALL_S, SHARE, STALL_FACTOR, Learnt, Patience
from axonp2p.training.messages import Progress, StartRound
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import Action, ProgressHeard, RoundReported, Tell
from axonp2p.training.tuning.exchange_tuner import ExchangeChoice
from axonp2p.verification.claims import RoundDone
from axonp2p.verification.signed_frames import SignedFrame

MOST_EXTENSIONS = 2
"""How often those are given more time without whom too few would be left, and oftener in the round's first minute.

Without them the job ends, so nothing is gained by haste: a machine that was busy for seconds is no lost one.
"""


class Attempt:
    """The messages heard since `StartRound`. The members of an attempt never change: a loss begins the next attempt.

    An exchange waits for every owner of a slice, and all members for it. So when nobody gets any further for longer
    than is usual, it is one of those that are behind who holds the others up.
    """

    def __init__(
        self,
        round: int,
        number: int,
        state: bytes,
        started: float,
        choice: ExchangeChoice,
        listeners: Iterable[int],
        stalls: int = 0,
    ) -> None:
        """`stalls`: how often in a row nobody got any further before, and nobody could be blamed."""
        self.round = round
        self.number = number
        self.state = state
        """Where the attempt starts from: the last accepted state."""
        self.started = started
        self.choice = choice
        self.members = frozenset(choice.shares)
        self.listeners = sorted(listeners)
        self.mark_every = 0
        """After how many local steps its members commit to where they are; 0: they do not."""
        self.shards: dict[int, list[int]] = {}
        """By rank."""
        self.finished: dict[int, float] = {}
        """When each member had finished its local steps."""
        self.reported: dict[int, float] = {}
        self.reports: dict[int, RoundDone] = {}
        self.signed: dict[int, SignedFrame] = {}
        """Those of them that their daemons signed, as they did: what is said later changes nothing."""
        self.agreed_at = math.inf
        """When all had reported the same state."""
        self.spoilt = False
        """Whether it must not count, even if those that are left agree."""
        self._slack = 2.0**stalls
        self._steps = dict.fromkeys(self.members, 0)
        self._last_news = started
        self._not_before = -math.inf
        self._extensions = 0
        self.silence = 0.0
        """The longest time in which nobody got any further."""

    @property
    def owners(self) -> set[int]:
        """The members that own a slice."""
        return {rank for rank, share in self.choice.shares.items() if share}

    def orders(self, shards: Mapping[int, list[int]], plan: TrainPlan, mark_every: int = 0) -> list[Action]:
        """The orders that begin it. `shards` are by rank; listeners have none."""
        members, choice = sorted(self.members), self.choice
        self.mark_every, self.shards = mark_every, {rank: list(several) for rank, several in shards.items()}
        return [
            Tell(
                rank,
                StartRound(
                    round=self.round,
                    attempt=self.number,
                    state=self.state,
                    members=members,
                    listeners=self.listeners,
                    shards=shards.get(rank, []),
                    steps=plan.steps,
                    seconds=plan.options.seconds,
                    settings=choice.settings,
                    shares=[choice.shares[member] for member in members],
                    gather=choice.gather.get(rank, EXACT),
                    result=choice.result.get(rank, EXACT),
                    mark_every=mark_every,
                ),
            )
            for rank in [*members, *self.listeners]
        ]

    def orders_are_out(self, now: float) -> None:
        """Until now the others had to be told first who is in the job; so long nobody was late."""
        if not any(self._steps.values()) and not self.reports:
            self.started = self._last_news = now

    def heard(self, event: ProgressHeard | RoundReported, steps: int, now: float) -> str:
        """Take in the word of a member on a round of so many `steps`; gives what is wrong with it, if anything is."""
        message = told_in(event)
        theirs, ours = (message.round, message.attempt), (self.round, self.number)
        if theirs > ours:
            return not_begun(event)
        if theirs < ours:
            return ""  # it crossed our order on its way
        if isinstance(message, RoundDone):
            if self.reports.setdefault(event.rank, message) != message:
                return "it reported a round twice"
            if len(message.slices) != len(self.members):
                return f"it reported {len(message.slices)} slices of {len(self.members)}"
            self.reported.setdefault(event.rank, now)
            if isinstance(event, RoundReported) and event.signed:
                self.signed.setdefault(event.rank, event.signed)
            self._news(now)
        elif message.step > steps:
            return "it told of more steps than the round has"  # each would be news, and hold the round up
        elif message.step <= self._steps[event.rank]:
            return ""
        else:
            self._steps[event.rank] = message.step
            self._news(now)
            if message.step < steps:
                return ""
        self.finished.setdefault(event.rank, now)
        return ""

    def too_early(self, event: ProgressHeard | RoundReported) -> str:
        """The fault in the word of one that is no member of it, if it is not of an attempt before."""
        message = told_in(event)
        return not_begun(event) if (message.round, message.attempt) > (self.round, self.number) else ""

    @property
    def no_step_yet(self) -> frozenset[int]:
        """Members that have ended no local step."""
        return frozenset(rank for rank, steps in self._steps.items() if not steps and rank not in self.finished)

    def took(self) -> dict[int, float]:
        """Seconds from the start to each report."""
        return {rank: at - self.started for rank, at in self.reported.items()}

    def _news(self, now: float) -> None:
        self.silence = max(self.silence, now - self._last_news)
        self._last_news = now

    # --- who is late ---

    def deadline(self, learnt: Learnt, patience: Patience, transfer_s: float, paused: Mapping[int, float]) -> float:
        """When somebody is late, or the attempt is stuck. `transfer_s`: what moving a model may take.

        `paused` says since when members stand still.
        """
        rests = self._rests(learnt, paused)
        known_who = bool(self._holding_up(paused))
        stuck = self._last_news + self._silence_allowed(learnt, patience, transfer_s, known_who=known_who)
        still = [since for rank, since in paused.items() if rank in self.members - self.reported.keys()]
        if still and not learnt.known and self.finished:
            # It stands still in the middle of the round, which nobody can finish without it.
            usual = max(self.finished.values()) - self.started
            stuck = min(stuck, max(self._last_news, *still) + learnt.may_take(-1, [usual]) - usual)
        return max(self._not_before, min([stuck, *rests.values()]))

    def wait_longer(self, now: float) -> bool:
        """Give those that are late half as much time again, when nobody can be done without; False after some times."""
        self._extensions += 1
        waited = now - self.started
        self._not_before = now + max(LEAST_REST_S, SHARE * waited)
        return self._extensions <= MOST_EXTENSIONS or waited < LEAST_STALL_S

    def apart(self, late: Collection[int], paused: Collection[int]) -> frozenset[int]:
        """The two that alone do not get on, after the same step, as if they did not reach each other; or nobody.

        So it is known sooner than their daemons give up the link.
        """
        silent = self.members - self.reports.keys()
        furthest = max(self._steps.values())
        behind = {rank for rank in silent if self._steps[rank] < furthest}
        two = frozenset(late or behind or (silent if self.reports else ()))
        steps = {self._steps[rank] for rank in two}
        stuck = len(two) == 2 and len(steps) == 1 and 0 not in steps
        return two if stuck and not two & set(paused) else frozenset()

    def late(self, learnt: Learnt, now: float, paused: Collection[int]) -> dict[int, str]:
        """Those that keep the others waiting, and how; nobody when it cannot be told who does."""
        reason = f"it had not finished round {self.round + 1} after {now - self.started:.1f} s"
        silent = self.members - self.reported.keys()
        still = silent & set(paused)
        rests = self._rests(learnt, paused)
        if late := {rank for rank in silent if rests.get(rank, math.inf) <= now}:
            # A member that has not reported may lack what one that stands still was to send.
            return dict.fromkeys(sorted(late & still or late), reason)
        return dict.fromkeys(sorted(self._holding_up(paused)), reason)

    def _holding_up(self, paused: Collection[int]) -> set[int]:
        """Those for which the others must be waiting when nobody gets any further; nobody when it cannot be told."""
        silent = set(self.members - self.reported.keys())
        furthest = max(self._steps.values())
        behind = {rank for rank in silent if self._steps[rank] < furthest}
        return silent & set(paused) or (behind if 2 * len(behind) <= len(self.members) else set())

    def _rests(self, learnt: Learnt, paused: Collection[int]) -> dict[int, float]:
        """Until when those may take that lag behind the first half: to report, or else to finish their steps."""
        for done in (self.reported, self.finished):
            lag = self.members - done.keys()
            awake = len(self.members) - len(lag & set(paused))
            first_half = sorted(done.values())[: (awake + 1) // 2]
            if not lag or not first_half or len(first_half) < (awake + 1) // 2:
                continue
            took = [at - self.started for at in first_half]
            rest = {rank: self.started + learnt.may_take(rank, took) for rank in lag}
            return {rank: max(until, first_half[-1]) for rank, until in rest.items()}
        return {}

    def _silence_allowed(self, learnt: Learnt, patience: Patience, transfer_s: float, *, known_who: bool) -> float:
        usual = learnt.silence(known_who=known_who)
        if usual is not None:
            return usual if known_who else usual * self._slack
        if not all(self._steps.values()) and not self.finished:
            return patience.first_round_s
        return max(LEAST_STALL_S, STALL_FACTOR * self.silence, transfer_s) * self._slack

    def never_ends(self, first: int, names: Mapping[int, str]) -> JobFailed:
        """The error to give up with when it is not the first that stalls."""
        waiting = ", ".join(names[rank] for rank in sorted(self.no_step_yet))
        return JobFailed(
            f"round {self.round + 1} does not end, though it was begun {self.number + 1 - first} times",
            cause=f"{len(self.members)} peers answer, but none finished in time"
            + (f"; no local step ended at {waiting}" if waiting else ""),
            fix="fewer steps a round, or peers with faster links (max-rtt)",
        )

    def never_steps(self, waited: float, names: Mapping[int, str]) -> JobFailed:
        """The error to give up with when no member comes through its first local step."""
        who = ", ".join(names[rank] for rank in sorted(self.members))
        return JobFailed(
            f"no peer came through its first local step in {waited:.0f} s: {who}",
            cause="data() or the first step does not end there, or takes longer than step-timeout under [train]",
            fix="axon logs JOB names the line of your file at which they were; axon check DIR times each part here",
        )

    def undecided(self, reason: str) -> JobFailed:
        """The error to give up with when members contradict each other, and it cannot be told who is wrong."""
        return JobFailed(
            f"round {self.round + 1}: the peers' results differ again and again, and no majority tells whose are wrong",
            cause=reason,
            fix="axon resume JOB continues with other peers; with three peers or more, a wrong one is found",
        )

    def awaited_after(self, blamed: Collection[int]) -> set[int]:
        """The members yet to come as far as those at which the task failed: through the steps, or to the report."""
        failed_late = all(rank in self.finished for rank in blamed)
        return set(self.members - (self.reported.keys() if failed_late else self.finished.keys()))


def told_in(event: ProgressHeard | RoundReported) -> Progress | RoundDone:
    """The report of the member."""
    return event.progress if isinstance(event, ProgressHeard) else event.done


def not_begun(event: ProgressHeard | RoundReported) -> str:
    """Its fault when there is no such attempt yet."""
    return f"it spoke of round {told_in(event).round + 1}, which has not begun"
