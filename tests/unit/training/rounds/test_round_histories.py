"""Whatever members do, in whatever order: what a job's training promises holds after every word."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from axonp2p.errors import JobFailed
from axonp2p.training.messages import AdoptState, Prepare, Prepared, Progress, StartRound, TaskFailed
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import (
    Action,
    EnoughAwake,
    Event,
    GiveUp,
    JobWaits,
    Leave,
    LineHeard,
    LinkBroken,
    MemberDropped,
    MemberJoined,
    MemberJoins,
    MemberLeaves,
    MemberLeftBehind,
    MemberLost,
    MemberPaused,
    MemberReady,
    MemberResumed,
    MistakeReported,
    ProgressHeard,
    RoundAccepted,
    RoundReported,
    SetMembers,
    StateAdoptedBy,
    Tell,
    Tick,
    Trained,
)
from axonp2p.training.rounds.machine import Rounds
from axonp2p.training.rounds.phases import AT_REST, Phase
from axonp2p.verification.claims import RoundDone
from tests.fakes import SIGNED
from tests.unit.training.conversation import round_done

SHARDS, ROUNDS, STEPS = 6, 3, 4
ranks = st.integers(0, 7)
once_in_a_while = st.integers(0, 5).map(lambda number: number == 5)
"""Most of what happens is in order; a history of nothing but trouble is over before a round is accepted."""
states = st.sampled_from([letter.encode() * 32 for letter in "ab"])


GOOD, BAD = b"g" * 32, b"x" * 32


class History(RuleBasedStateMachine):
    """A job, its members' words, and a record of everything that was promised."""

    def report(self, round: int, attempt: int, state: bytes, *, odd: int | None = None) -> RoundDone:
        """What a member says of an attempt; of the slice of the owner at place `odd` it had another result."""
        slices = [GOOD] * len(self.of_attempt)
        if odd is not None and slices:
            slices[odd % len(slices)] = BAD
        return round_done(round, attempt, state, slices=slices)

    @initialize(
        members=st.integers(1, 6),
        min_peers=st.integers(1, 3),
        resumed=once_in_a_while,
        first_round=st.integers(0, ROUNDS),
        ready=st.booleans(),
    )
    def begin(self, members: int, min_peers: int, resumed: bool, first_round: int, ready: bool) -> None:
        self.now = 100.0
        self.min_peers = min_peers
        self.first_round = first_round if resumed else 0
        plan = TrainPlan(
            "job", "task.py", SHARDS, ROUNDS, STEPS, 2, 0, self.first_round, b"r" * 32 if resumed else None
        )
        self.members = set(range(members))
        self.of_attempt: list[int] = []
        self.behind: set[int] = set()
        """In the job, but in no round."""
        self.next_rank = members
        self.told: set[int] = set()
        self.reports: dict[int, RoundDone] = {}
        self.adopting: dict[int, bytes] = {}
        self.accepted: list[bytes] = []
        self.current: tuple[int, int] | None = None
        self.state: bytes | None = b"r" * 32 if resumed else None
        self.over = False
        self.paused: set[int] = set()
        self.until: dict[int, float] = {}
        """By when those have to go whose owners want their machines back."""
        self.lost: set[int] = set()
        self.waits = False
        self.rounds = Rounds(plan, {rank: f"peer{rank}" for rank in range(members)}, min_peers=min_peers)
        self.check(self.rounds.begin(self.now))
        if ready:
            self.all_are_ready_alike()

    def hear(self, event: Event, seconds: float = 0.5) -> None:
        self.now += seconds
        match event:
            case MemberPaused(rank) if rank in self.members | self.behind:
                self.paused.add(rank)
            case MemberResumed(rank):
                self.paused.discard(rank)
            case MemberLeaves(rank, _, until) if rank in self.members | self.behind:
                self.until[rank] = until
            case MemberLost(rank):
                self.lost.add(rank)
        if isinstance(event, RoundReported) and event.rank in self.members:
            done = event.done
            if (done.round, done.attempt) == self.current:
                self.reports.setdefault(event.rank, done)
        self.check(self.rounds.heard(event, self.now))

    # --- what members may do, rightly or not ---

    @rule(now=once_in_a_while, rank=ranks, state=states)
    def one_is_ready(self, now: bool, rank: int, state: bytes) -> None:
        if now:
            self.hear(MemberReady(rank, Prepared(state=state, parameters=1, values=1), bytes(32)))

    @rule()
    def all_are_ready_alike(self) -> None:
        for rank in sorted(self.members):
            self.hear(MemberReady(rank, Prepared(state=b"a" * 32, parameters=1, values=1), bytes(32)))

    @rule()
    def all_adopt(self) -> None:
        for rank, state in sorted(self.adopting.items()):
            self.adopting.pop(rank)
            self.hear(StateAdoptedBy(rank, state))

    @rule(rank=ranks, state=states | st.just(b"r" * 32))
    def one_adopts(self, rank: int, state: bytes) -> None:
        if self.rounds.phase is Phase.AGREEING:
            self.hear(StateAdoptedBy(rank, state))

    @rule(rank=ranks, state=st.sampled_from([b"a" * 32] * 4 + [b"b" * 32]))
    def one_reports(self, rank: int, state: bytes) -> None:
        if self.current:
            self.hear(RoundReported(rank, self.report(*self.current, state), signed=SIGNED))

    @rule(odd=st.none() | ranks, other=st.sampled_from([b"a" * 32, b"b" * 32, None]))
    def all_report(self, odd: int | None, other: bytes | None) -> None:
        """All say the same, but for one that says something else or is lost."""
        before = self.current
        for rank in sorted(self.members, key=lambda rank: (rank == odd and other is None, rank)):
            if before is None or self.current != before or self.over:
                return
            if rank == odd and other is None:
                self.hear(MemberLost(rank, "killed"))
            else:
                state = other if rank == odd and other else b"a" * 32
                self.hear(RoundReported(rank, self.report(*before, state), signed=SIGNED))

    @rule(rank=ranks, state=states)
    def one_reports_the_attempt_before(self, rank: int, state: bytes) -> None:
        if self.current and self.current[1]:
            round, attempt = self.current
            self.hear(RoundReported(rank, self.report(round, attempt - 1, state), signed=SIGNED))

    @rule()
    def one_reports_and_is_lost(self) -> None:
        if self.current and len(self.members) > self.min_peers:
            rank = min(self.members)
            self.hear(RoundReported(rank, self.report(*self.current, b"a" * 32), signed=SIGNED))
            self.hear(MemberLost(rank, "killed"))

    @rule(now=once_in_a_while, rank=ranks, round=st.integers(0, ROUNDS), attempt=st.integers(0, 3), state=states)
    def one_reports_anything(self, now: bool, rank: int, round: int, attempt: int, state: bytes) -> None:
        if now:
            self.hear(RoundReported(rank, self.report(round, attempt, state), signed=SIGNED))

    @rule(rank=ranks, odd=ranks)
    def one_reports_another_result(self, rank: int, odd: int) -> None:
        if self.current and rank in self.members:
            self.hear(RoundReported(rank, self.report(*self.current, b"b" * 32, odd=odd), signed=SIGNED))

    @rule(now=once_in_a_while, ready=st.booleans())
    def one_more_comes(self, now: bool, ready: bool) -> None:
        if now and not self.over:
            rank = self.next_rank
            self.next_rank += 1
            self.behind.add(rank)
            self.hear(MemberJoins(rank, f"peer{rank}"))
            if ready:
                self.hear(MemberReady(rank, Prepared(state=b"a" * 32, parameters=1, values=1), bytes(32)))

    @rule(state=st.none() | states)
    def those_behind_say_where_they_are(self, state: bytes | None) -> None:
        for rank in sorted(self.behind):
            if not self.over:
                self.hear(StateAdoptedBy(rank, state or self.state or b"a" * 32))

    @rule(rank=ranks, upload=st.floats(0, 1e9))
    def a_line_is_measured(self, rank: int, upload: float) -> None:
        self.hear(LineHeard(rank, upload, 2 * upload))

    @rule(rank=ranks, step=st.integers(0, STEPS))
    def one_goes_on(self, rank: int, step: int) -> None:
        if self.current:
            round, attempt = self.current
            self.hear(ProgressHeard(rank, Progress(round=round, attempt=attempt, step=step, loss=1.0, samples=step)))

    @rule(now=once_in_a_while, rank=ranks)
    def one_makes_a_mistake(self, now: bool, rank: int) -> None:
        if now:
            self.hear(MistakeReported(rank, TaskFailed(doing="loss()", traceback="ValueError")))

    @rule(now=once_in_a_while, rank=ranks)
    def one_is_lost(self, now: bool, rank: int) -> None:
        if now:
            self.hear(MemberLost(rank, "killed"))

    @rule(now=once_in_a_while, rank=ranks, again=st.booleans())
    def an_owner_is_back(self, now: bool, rank: int, again: bool) -> None:
        if now:
            for _ in range(1 + again):
                self.hear(MemberPaused(rank, "another program"))

    @rule(now=once_in_a_while)
    def all_owners_are_back(self, now: bool) -> None:
        if now:
            for rank in sorted(self.members):
                self.hear(MemberPaused(rank, "another program"))

    @rule(rank=ranks)
    def an_owner_goes(self, rank: int) -> None:
        if rank in self.paused:
            self.hear(MemberResumed(rank))

    @rule(now=once_in_a_while, rank=ranks, seconds=st.sampled_from([0.0, 3.0, 60.0]))
    def an_owner_wants_the_machine(self, now: bool, rank: int, seconds: float) -> None:
        if now:
            self.hear(MemberLeaves(rank, "memory is short", self.now + 0.5 + seconds))

    @rule()
    def an_owners_time_is_over(self) -> None:
        deadline = self.rounds.next_deadline()
        if self.until.keys() & self.members and deadline is not None:
            self.hear(Tick(), max(0.0, deadline - self.now))

    @rule(now=once_in_a_while, rank=ranks, to=ranks)
    def a_link_breaks(self, now: bool, rank: int, to: int) -> None:
        if now:
            self.hear(LinkBroken(rank, to, "cut"))

    @rule(now=once_in_a_while, seconds=st.floats(0, 500))
    def time_passes(self, now: bool, seconds: float) -> None:
        if now:
            self.hear(Tick(), seconds)

    # --- what must hold ---

    def check(self, said: list[Action]) -> None:
        assert not (self.over and said)
        orders: dict[int, StartRound] = {}
        for action in said:
            assert not self.over, "nothing is said after the end"
            match action:
                case SetMembers(members, joining):
                    assert set(members) == self.members
                    assert set(joining) == self.behind - self.paused
                    self.told = {*members, *joining}
                case MemberLeftBehind(rank, reason):
                    self.members.remove(rank)
                    self.behind.add(rank)
                    self.reports.pop(rank, None)
                    assert reason.startswith("paused: ") == (rank in self.paused)
                    assert len(self.members) >= self.min_peers, "who cannot be done without is waited for, or goes"
                case MemberJoined(rank, round):
                    self.behind.remove(rank)
                    self.members.add(rank)
                    assert rank not in self.paused
                    assert round == self.first_round + len(self.accepted)
                case MemberDropped(rank, _) if rank in self.behind:
                    self.behind.remove(rank)
                case MemberDropped(rank, reason):
                    self.members.remove(rank)
                    self.reports.pop(rank, None)
                    if reason.startswith("handed back: ") and self.current and rank not in self.lost:
                        over = self.until[rank] <= self.now
                        assert over or len(self.members) >= self.min_peers, "it may have to give the state yet"
                case JobWaits(waiting_for):
                    assert set(waiting_for) == self.paused & self.members
                    self.waits = True
                case EnoughAwake():
                    assert self.waits
                    self.waits = False
                case Tell(rank, StartRound() as order):
                    orders[rank] = order
                case Tell(rank, Prepare()):
                    assert rank in self.members | self.behind
                case Tell(rank, AdoptState() as order):
                    assert {rank, *order.senders} <= self.told, "nobody is spoken of whom the others do not know"
                    assert rank not in order.senders
                    if rank in self.members:
                        self.adopting[rank] = order.state
                    else:
                        assert self.state in (None, order.state)
                case RoundAccepted(round, reports, state):
                    self.check_accepted(round, dict(reports), state)
                case Trained(state, members):
                    assert (set(members), state) == (self.members, self.state or state)
                    assert len(self.accepted) == ROUNDS - self.first_round
                    self.over = True
                case Leave(reason):
                    assert reason
                    assert self.until, "some owner wanted a machine back"
                    assert len(self.members - self.until.keys()) < self.min_peers
                    self.over = True
                case GiveUp(error):
                    assert isinstance(error, JobFailed)
                    assert error.message
                    self.over = True
        if orders:
            self.check_orders(orders)

    def check_accepted(self, round: int, reports: dict[int, RoundDone], state: bytes) -> None:
        assert round == self.first_round + len(self.accepted), "each round is accepted once, in order"
        assert set(reports) == self.members
        assert len(reports) >= self.min_peers
        assert reports == self.reports, "it counts what was said, of this attempt"
        assert {done.state for done in reports.values()} == {state}
        self.accepted.append(state)
        self.state = state

    def check_orders(self, orders: dict[int, StartRound]) -> None:
        listeners = set(orders) - self.members
        assert self.members <= set(orders) <= self.told
        assert listeners <= self.behind - self.paused
        assert len(self.members) >= self.min_peers
        assert not orders.keys() & self.until.keys(), "who has to go begins nothing new"
        (about,) = {(order.round, order.attempt) for order in orders.values()}
        assert self.current is None or about > self.current
        (state,) = {order.state for order in orders.values()}
        assert self.state in (None, state), "it goes on from the last accepted state"
        self.state = state
        assert all(order.members == sorted(self.members) for order in orders.values())
        assert all(order.listeners == sorted(listeners) for order in orders.values())
        assert all(sum(order.shares) > 0 for order in orders.values())
        assert len({tuple(order.shares) for order in orders.values()}) == 1
        assert not any(orders[rank].shards for rank in listeners)
        self.of_attempt = sorted(self.members)
        assert sorted(shard for order in orders.values() for shard in order.shards) == list(range(SHARDS))
        self.current = about
        self.reports = {}

    @invariant()
    def every_wait_has_a_deadline_or_is_for_a_paused_member(self) -> None:
        assert (self.rounds.phase in AT_REST) == self.over
        assert set(self.rounds.members) == self.members
        assert self.over or self.rounds.present == self.members | self.behind
        if self.over:
            assert self.rounds.next_deadline() is None
            return
        awake = self.members - self.paused
        assert self.waits == (len(awake) < self.min_peers)
        assert self.waits or self.rounds.next_deadline() is not None

    def teardown(self) -> None:
        """Left alone, the job ends, by its deadlines only; or it waits, and ends when the owners have gone."""
        if not hasattr(self, "rounds"):
            return
        self.only_time_passes()
        if not self.over:
            assert self.waits
            for rank in sorted(self.paused & self.members):
                self.hear(MemberResumed(rank))
            self.only_time_passes()
        assert self.over
        assert self.rounds.phase in (Phase.TRAINED, Phase.LEFT, Phase.GIVEN_UP)

    def only_time_passes(self) -> None:
        for _ in range(80):
            deadline = self.rounds.next_deadline()
            if deadline is None:
                return
            self.now = max(self.now, deadline)
            self.hear(Tick(), 0.0)


TestHistories = History.TestCase
TestHistories.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
