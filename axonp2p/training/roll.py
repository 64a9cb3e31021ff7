"""Who is in a job, who has left it and why, and who has to go because an owner wants the machine back. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from axonp2p.errors import JobFailed
from axonp2p.training.pauses import Pauses
from axonp2p.training.round_messages import (
    Action,
    MemberDropped,
    MemberLeaves,
    MemberPaused,
    MemberResumed,
    OwnersWord,
    SetMembers,
)


class Roll:
    """The members of one job. `names` are those of its first members, `least` the fewest that it goes on with."""

    def __init__(self, names: Mapping[int, str], least: int, say: Callable[[Action], None]) -> None:
        self.members = sorted(names)
        """Who is in the job now."""
        self.names = dict(names)
        self.least = least
        self.pauses = Pauses(least)
        self.unsettled = ""
        """Why the attempt has to be made again, above all who left and why; whoever begins one empties it."""
        self.taken_back = False
        """Whether too few stay because owners want their machines back: nobody's fault."""
        self._say = say
        self._told: list[int] = []
        self._gone: list[str] = []

    def drop(self, rank: int, reason: str) -> None:
        """The member leaves the job."""
        self.members.remove(rank)
        self._gone.append(f"{self.names[rank]}: {reason}")
        self.unsettled = self.unsettled or self._gone[-1]
        self.taken_back = self.too_few and rank in self.pauses.leaving([rank])
        self._say(MemberDropped(rank, reason))

    def drop_all(self, reasons: Mapping[int, str]) -> None:
        """The same for several."""
        for rank, reason in reasons.items():
            self.drop(rank, reason)

    def drop_late(self, late: Mapping[int, str]) -> None:
        """Let those go that keep the others waiting; paused ones only where enough are left without them."""
        paused = self.pauses.paused(self.members)
        self.drop_all({rank: reason for rank, reason in late.items() if rank not in paused})
        left_out = {rank: self.pauses.why_left_out(rank) for rank in late if rank in paused}
        if len(self.members) - len(left_out) >= self.least:
            self.drop_all(left_out)

    def lose(self, rank: int, reason: str) -> None:
        """The member has gone by itself; of one that had to go it is known why."""
        self.drop(rank, self.pauses.leaving([rank]).get(rank, reason))

    # --- what owners want ---

    def owner_says(self, event: OwnersWord, now: float, *, in_round: bool) -> None:
        """A member's owner is back, or has gone again. Who has to go may finish its round, where there is one."""
        if event.rank not in self.members:
            return
        match event:
            case MemberPaused(rank, reason):
                self.pauses.pause(rank, reason, now)
            case MemberResumed(rank):
                self.pauses.resume(rank)
            case MemberLeaves(rank, reason, until):
                self.pauses.must_leave(rank, reason, until)
                if until <= now or not in_round:
                    self.lose(rank, reason)

    def let_go(self, now: float, fetch_s: float) -> None:
        """Owners' deadlines, which go by our clock whatever the job's says. `fetch_s`: the way of a state."""
        deadline = self.pauses.owners_deadline(self.members, fetch_s)
        if deadline is None or deadline > now:
            return
        if self.pauses.too_few_stay(self.members):
            self.taken_back = True
        else:
            self.drop_all(self.pauses.leaving(self.members, by=now))

    def all_stay(self) -> bool:
        """Whether an attempt can begin once those have gone that have to. When too few stay, nobody goes yet."""
        self.taken_back = self.pauses.too_few_stay(self.members)
        if not self.taken_back:
            self.drop_all(self.pauses.leaving(self.members))
        return not self.taken_back

    # --- who is there ---

    @property
    def awake(self) -> set[int]:
        """Those that do not stand still."""
        return set(self.members) - self.pauses.paused(self.members).keys()

    @property
    def too_few(self) -> bool:
        """Whether the job cannot go on with those that are left."""
        return len(self.members) < self.least

    def tell_members(self) -> None:
        """Say who is in the job, if that has changed since it was said."""
        if self._told != self.members:
            self._told = list(self.members)
            self._say(SetMembers(list(self.members)))

    def why_leave(self) -> str:
        """What a job is left with whose members have to go, or have gone."""
        going = [f"{self.names[rank]}: {reason}" for rank, reason in self.pauses.leaving(self.members).items()]
        return "; ".join(going) or self._gone[-1]

    def too_few_left(self) -> JobFailed:
        """The error to give up with."""
        return JobFailed(
            f"{len(self.members)} peers are left; the job needs at least {self.least}",
            cause="; ".join(self._gone),
            fix="axon peers shows who is there now; a lower min-peers goes on with fewer",
        )
