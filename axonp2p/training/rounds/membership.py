"""The members of a job, those that left and why, and those that must go as an owner wants the machine back. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from axonp2p.errors import JobFailed
from axonp2p.plain_text import plural
from axonp2p.training.round_messages import (
    Action,
    MemberDropped,
    MemberJoined,
    MemberLeaves,
    MemberLeftBehind,
    MemberPaused,
    MemberResumed,
    OwnersWord,
    SetMembers,
)
from axonp2p.training.rounds.catching_up import CatchingUp
from axonp2p.training.rounds.pauses import Pauses


class Membership:
    """The members of one job. `names` are those of its first members, `least` the fewest that it goes on with."""

    def __init__(self, names: Mapping[int, str], least: int, say: Callable[[Action], None]) -> None:
        self.members = sorted(names)
        """The members that take part in rounds now."""
        self.catching_up = CatchingUp()
        """The members that are in the job besides."""
        self.names = dict(names)
        self.least = least
        self.pauses = Pauses(least)
        self.unsettled = ""
        """Why the attempt has to be made again, above all who left and why; whoever begins one empties it."""
        self.taken_back = False
        """Whether too few stay because owners want their machines back: nobody's fault."""
        self._say = say
        self._told = SetMembers([])
        self._gone: list[str] = []

    # --- who goes ---

    def drop(self, rank: int, reason: str) -> None:
        """The member leaves the job."""
        if rank in self.catching_up:
            self.catching_up.goes(rank)
        else:
            self._no_longer_with_us(rank, reason)
            self.taken_back = self.too_few and rank in self.pauses.leaving([rank])
        self._say(MemberDropped(rank, reason))

    def drop_all(self, reasons: Mapping[int, str]) -> None:
        """The same for several."""
        for rank, reason in reasons.items():
            self.drop(rank, reason)

    def leave_behind(self, late: Mapping[int, str], until: float, *, loaded: bool = True) -> None:
        """Go on without those that keep the others waiting, for now. They may come back once they have caught up.

        With too few left one that is awake is dropped, and one that stands still is waited for. `until` is how long
        they may take, on the job's clock; `loaded` says whether they have built their model.
        """
        paused = self.pauses.paused(self.members)
        enough, leaving = len(self.members) - len(late) >= self.least, self.pauses.leaving(late)
        for rank, reason in late.items():
            if enough and rank in leaving:
                self.drop(rank, leaving[rank])  # its owner wants it back: it catches up with nothing more
            elif enough:
                reason = self.pauses.why_left_out(rank) if rank in paused else reason
                self._no_longer_with_us(rank, reason)
                self.catching_up.falls_behind(rank, until, paused=rank in paused, loaded=loaded)
                self._say(MemberLeftBehind(rank, reason))
            elif rank not in paused:
                self.drop(rank, reason)

    def _no_longer_with_us(self, rank: int, reason: str) -> None:
        self.members.remove(rank)
        self._gone.append(f"{self.names[rank]}: {reason}")
        self.unsettled = self.unsettled or self._gone[-1]

    def lose(self, rank: int, reason: str) -> None:
        """The member has gone by itself; of one that had to go it is known why."""
        self.drop(rank, self.pauses.leaving([rank]).get(rank, reason))

    # --- who comes ---

    def comes(self, rank: int, name: str, until: float) -> None:
        """A new one, which is told to prepare."""
        self.names[rank] = name
        self.catching_up.comes(rank, until)

    def let_in(self, state: bytes, most: int, round: int) -> None:
        """Those that hold the accepted state take part from now on, as far as there is work for them."""
        for rank in self.catching_up.arrived(state)[: max(0, most - len(self.members))]:
            self.catching_up.goes(rank)
            self.members = sorted([*self.members, rank])
            self._say(MemberJoined(rank, round))

    # --- what owners want ---

    def owner_says(self, event: OwnersWord, now: float, until: float, *, in_round: bool) -> None:
        """A member's owner is back, or has gone again. One that has to go may finish its round, where there is one.

        `until`: how long one that goes on again may take to catch up, on the job's clock.
        """
        if event.rank not in self.present:
            return
        late = event.rank in self.catching_up
        match event:
            case MemberPaused(rank, reason):
                self.pauses.pause(rank, reason, now)
                if late:
                    self.catching_up.pauses(rank)
            case MemberResumed(rank):
                self.pauses.resume(rank)
                if late:
                    self.catching_up.goes_on(rank, until)
            case MemberLeaves(rank, reason, by):
                self.pauses.must_leave(rank, reason, by)
                if by <= now or late or not in_round:
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
        """Whether an attempt can begin once those have gone that have to.

        When too few stay, nobody goes yet; with enough on their way, those go when they must, or the others are there.
        """
        too_few_stay = self.pauses.too_few_stay(self.members)
        self.taken_back = too_few_stay and self.pauses.too_few_stay([*self.members, *self.catching_up.awake])
        if not too_few_stay:
            self.drop_all(self.pauses.leaving(self.members))
        return not self.taken_back

    # --- who is there ---

    @property
    def present(self) -> set[int]:
        """Everybody in the job."""
        return {*self.members, *self.catching_up.ranks}

    @property
    def awake(self) -> set[int]:
        """Those of them that do not stand still."""
        return self.present - self.pauses.paused(self.present).keys()

    def needs(self, ranks: Collection[int]) -> bool:
        """Whether the job ends without these members, now or once those have gone that have to."""
        left = [rank for rank in self.members if rank not in ranks]
        ends = self.pauses.too_few_stay(left) and not self.pauses.too_few_stay(self.members)
        return len(left) < self.least or ends

    @property
    def too_few(self) -> bool:
        """Whether the job cannot go on with those that are left."""
        return len(self.members) < self.least

    def tell_members(self) -> None:
        """Say who is in the job, if that has changed since it was said. To those that rest nothing is to be sent."""
        roster = SetMembers(list(self.members), self.catching_up.awake)
        if self._told != roster:
            self._told = roster
            self._say(roster)

    def why_leave(self) -> str:
        """The reason of the members that have to go, or of the last that has gone."""
        going = [f"{self.names[rank]}: {reason}" for rank, reason in self.pauses.leaving(self.members).items()]
        return "; ".join(going) or self._gone[-1]

    def too_few_left(self) -> JobFailed:
        """The error to give up with."""
        return JobFailed(
            f"{plural(len(self.members), 'peer')} left; the job needs at least {self.least}",
            cause="; ".join(self._gone),
            fix="axon peers shows who is there now; a lower min-peers continues with fewer",
        )
