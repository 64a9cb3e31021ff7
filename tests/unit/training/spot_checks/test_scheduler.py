"""The coordinator's checks in conversation: what it hears, and what it then says."""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from collections import Counter
from random import Random

import msgspec
import pytest

from axonp2p.training.round_messages import CheckEnded, ChecksImpossible, SegmentHeard, Tell
from axonp2p.training.spot_checks.open_checks import Finished
from axonp2p.training.spot_checks.scheduler import MOST_WITHHELD, CheckSettings, SpotChecks
from axonp2p.verification.claims import Mark, RoundDone, SegmentRedone
from axonp2p.verification.judgement import Outcome
from axonp2p.verification.own_proofs import OWN_SEGMENTS
from axonp2p.verification.rates import Trust
from axonp2p.verification.signed_frames import what_is_said
from axonp2p.wire.frame import pack_frame
from tests.fakes import SIGNED

STEPS, BATCH = 8, 4
START, BEFORE, END, FALSE = ([value] * 32 for value in (0.0, 0.9, 1.0, 0.4))
EVERYBODY = {0, 1, 2, 3, 4}
FAST = dict.fromkeys(range(10), 1e9)


def mark(step, weights, memory=(), leg=0):
    named = hashlib.sha256(str(weights).encode()).digest()
    return Mark(leg=leg, step=step, name=named, size=100, sketch=struct.pack("<32d", *weights), memory=list(memory))


def report(end=END, round=0, marks=None, **changes):
    usual = RoundDone(
        round=round, attempt=0, state=bytes(32), loss=1.0, samples=STEPS * BATCH, flops=1, train_seconds=1.0,
        exchange_seconds=0.0, exchanges=1, left_out=[], kept_back=0, slices=[], sent_bytes=0, received_bytes=0,
        metrics={}, test_samples=0, marks=[mark(0, START), mark(STEPS, end)] if marks is None else marks,
    )  # fmt: skip
    return msgspec.structs.replace(usual, **changes)


def as_signed(rank, message):
    """What the daemon of that member has signed."""
    return msgspec.structs.replace(SIGNED, name=str(rank), frame=pack_frame(message))


class Conversation:
    """Five members; `sure` are those that chance picks out."""

    def __init__(self, sure=1.0, trust=None):
        self.now = 0.0
        settings = CheckSettings(sure, 2**30, lambda _: trust or Trust(), lambda: 0.0)
        self.checks = SpotChecks(settings, steps=STEPS, batch=BATCH, from_the_start=True)
        assert self.checks.cut(1000, STEPS, 5).every == STEPS

    def finish(self, reports, round=0, unheard=(), unsigned=(), every=STEPS):
        shards = {rank: [rank] for rank in reports}
        signed = {rank: as_signed(rank, one) for rank, one in reports.items() if rank not in unsigned}
        done = Finished(round, 0, every, 1, True, shards, reports, signed, unheard, 10.0, FAST)
        breaches = self.checks.breaches(done)
        said = list(self.checks.draw(without(done, breaches)))
        return breaches, said

    def finish_checked(self, reports):
        """A round of which everything is checked and found to be good."""
        assert self.finish(reports) == ({}, [])
        while asked := self.asks():
            for rank, order in asked.items():
                assert not self.answers(rank, order).gone

    def asks(self, awake=EVERYBODY, present=EVERYBODY):
        said = list(self.checks.orders(awake, present, self.now))
        assert all(isinstance(action, Tell) for action in said)
        return {action.rank: action.message for action in said}

    def answers(self, rank, order, end=END, before=BEFORE, failed="", awake=EVERYBODY, signed=True, at=STEPS):
        redone = SegmentRedone(
            of=order.of, round=order.round, attempt=0, step=order.start.step, start=order.start.name,
            end=None if failed else mark(at, end), before_last=struct.pack("<32d", *before), flops=7, failed=failed,
        )  # fmt: skip
        frame = as_signed(rank, redone) if signed else None
        return self.checks.heard(SegmentHeard(rank, redone, frame), awake, self.now)


def without(done, breaches):

    return dataclasses.replace(done, reports={rank: one for rank, one in done.reports.items() if rank not in breaches})


def everybody(round=0, **ends):
    return {rank: report(ends.get(f"of_{rank}", END), round) for rank in range(5)}


def test_each_is_checked_by_another_and_each_is_asked_once_at_a_time():
    desk = Conversation()
    assert desk.finish(everybody()) == ({}, [])
    checked = []
    while asked := desk.asks():
        assert desk.asks() == {}  # nobody else is free, or left to be checked
        for rank, order in asked.items():
            assert rank != order.of
            found = desk.answers(rank, order)
            assert [(one.judgement.outcome, one.judgement.distance) for one in found.said] == [(Outcome.PASSED, 0)]
            assert not found.gone
            checked.append(order.of)
    assert sorted(checked) == [0, 1, 2, 3, 4]
    assert desk.checks.trust_in(0) == Trust(passed=1)


def test_a_false_claim_goes_to_a_second_one_and_is_convicted_when_its_machine_is_known():
    desk = Conversation()
    desk.finish_checked(everybody())
    desk.finish(everybody(round=1, of_2=FALSE), 1)
    gone, told = {}, []
    own = set()
    while asked := desk.asks():
        for rank, order in asked.items():
            own |= {rank} if rank == order.of else set()
            found = desk.answers(rank, order)
            gone |= found.gone
            told += found.said
    assert list(gone) == [2]
    assert gone[2] == "steps 1 to 8 of round 2 were done again by 2 others, and do not lead where it said"
    (convicted,) = [action for action in told if action.convicted]
    assert (convicted.of, convicted.convicted, len(convicted.by), convicted.flops) == (2, [2], 2, 14)
    assert convicted.judgement.distance == pytest.approx(0.6)
    assert own == {2, *convicted.by} == {proof.by for proof in convicted.proofs}
    assert [proof.round for proof in convicted.proofs if proof.by == 2] == [0]


def test_a_conviction_shows_the_very_words_that_counted_whatever_else_is_said():
    desk, told = Conversation(), []
    desk.finish_checked(everybody())
    desk.finish(everybody(round=1, of_2=FALSE), 1)
    while asked := desk.asks():
        for rank, order in asked.items():
            for number in range(100):
                elsewhere = msgspec.structs.replace(order, round=order.round + 2 + number)
                desk.answers(rank, elsewhere, end=FALSE)  # nobody asked for it
            told += desk.answers(rank, order).said
            desk.answers(rank, order, end=FALSE)  # nor for a second word
    (convicted,) = [action for action in told if action.convicted]
    assert what_is_said(convicted.report.frame) == report(FALSE, 1)
    assert [int(one.name) for one in convicted.opinions] == convicted.by
    said = [what_is_said(one.frame) for one in convicted.opinions]
    assert [(one.of, one.round, one.end) for one in said] == [(2, 1, mark(STEPS, END))] * 2
    for proof in convicted.proofs:
        assert what_is_said(proof.report.frame) == report(END, proof.round)
        again = what_is_said(proof.said.frame)
        assert (int(proof.said.name), again.of, again.end) == (proof.by, proof.by, mark(STEPS, END))


def own_ends(desk, honest):
    """Somebody's claim of the second round is false; of the own steps that are done again those of `honest` repeat."""
    desk.finish_checked(everybody())
    desk.finish(everybody(round=1, of_2=FALSE), 1)
    gone, told = {}, []
    while asked := desk.asks():
        for rank, order in asked.items():
            lost = rank == order.of and not honest(rank)
            found = desk.answers(rank, order, end=[0.3] * 32 if lost else END)
            gone |= found.gone
            told += found.said
    return gone, [action for action in told if action.of == 2 and action.round == 1]


def test_whose_own_steps_lead_elsewhere_goes_without_being_called_a_cheat():
    gone, (told,) = own_ends(Conversation(), lambda rank: rank != 2)
    assert list(gone) == [2]
    assert (told.judgement.outcome, told.convicted) == (Outcome.UNLIKE, [])


@pytest.mark.parametrize("honest", [lambda rank: False, lambda rank: rank == 2])
def test_where_those_who_accuse_do_not_come_to_their_own_ends_nobody_has_to_go(honest):
    desk = Conversation()
    gone, (told,) = own_ends(desk, honest)
    assert not gone
    assert (told.judgement.outcome, told.convicted) == (Outcome.UNDECIDED, [])
    assert desk.finish(everybody(round=2), 2)[1] == [
        ChecksImpossible("the same steps hardly ever lead to the same end twice")
    ]


def test_who_is_asked_too_late_about_own_steps_is_asked_about_later_ones():
    desk, told = Conversation(), []
    desk.finish_checked(everybody())
    desk.finish(everybody(round=1, of_2=FALSE), 1)
    for round in range(2, 6):
        while asked := desk.asks():
            for rank, order in asked.items():
                late = rank == order.of and order.round < 2
                told += desk.answers(rank, order, failed="not handed over" if late else "").said
        desk.finish(everybody(round=round), round)
    assert [one.convicted for one in told if one.of == 2 and one.round == 1] == [[2]]


def test_where_work_cannot_be_checked_any_more_nobody_is_accused_any_more():
    desk = Conversation()
    desk.finish(everybody(of_2=FALSE))
    rank, order = next((rank, order) for rank, order in desk.asks().items() if order.of == 2)
    desk.answers(rank, order)
    assert list(desk.checks.off("a reason")) == [ChecksImpossible("a reason")]
    assert desk.asks() == {}
    assert desk.checks.open_cases == 0


def test_whose_machine_is_never_led_where_others_are_goes_without_being_called_a_cheat():
    desk = Conversation()
    desk.finish(everybody(of_2=FALSE))
    gone, told = {}, []
    while asked := desk.asks():
        for rank, order in asked.items():
            found = desk.answers(rank, order, end=[0.3] * 32 if rank == 2 else END)
            gone |= found.gone
            told += found.said
    assert list(gone) == [2]
    assert not [action for action in told if action.convicted]
    assert Outcome.UNLIKE in {action.judgement.outcome for action in told}


def test_what_was_not_asked_for_changes_nothing():
    desk = Conversation()
    desk.finish({rank: report() for rank in (0, 1)})
    asked = desk.asks(awake={0, 1}, present={0, 1})
    order = asked[1]
    for rank in (2, 0):
        found = desk.answers(rank, order, end=FALSE)
        assert (found.said, found.gone) == ([], {})
    assert desk.answers(1, order).said
    assert not desk.answers(1, order).said  # twice


def test_who_is_late_or_gone_is_replaced():
    desk = Conversation()
    desk.finish({0: report(), **{rank: report(marks=[mark(0, START), mark(8, END)]) for rank in (1, 2)}})
    first = {order.of: rank for rank, order in desk.asks(awake={0, 1, 2}, present={0, 1, 2}).items()}
    desk.now = desk.checks.deadline()
    desk.checks.due(desk.now)
    second = {order.of: rank for rank, order in desk.asks(awake={0, 1, 2}, present={0, 1, 2}).items()}
    assert first.keys() & second.keys()
    assert all(second[of] != first[of] for of in first.keys() & second.keys())
    assert desk.asks(awake={0}, present={0}) == {}  # cases of those that are gone are closed
    assert desk.checks.deadline() is None


def test_who_hands_nothing_over_has_to_go_in_the_end():
    desk = Conversation(sure=0.5)
    gone = {}
    for round in range(MOST_WITHHELD):
        assert not gone
        desk.finish({rank: report(round=round) for rank in range(3)}, round=round)
        while asked := desk.asks(awake={0, 1, 2}, present={0, 1, 2}):
            for rank, order in asked.items():
                failed = "not handed over" if order.of == 2 else ""
                found = desk.answers(rank, order, failed=failed, awake={0, 1, 2})
                gone |= found.gone
    assert gone == {2: "it did not hand over what it had committed to, 3 times"}


def test_one_alone_that_says_it_was_handed_nothing_makes_nobody_go_and_ends_no_checks():
    desk = Conversation(sure=0.5)
    for round in range(10):
        assert desk.finish({rank: report(round=round) for rank in range(2)}, round=round) == ({}, [])
        while asked := desk.asks(awake={0, 1}, present={0, 1}):
            for rank, order in asked.items():
                failed = "not handed over" if order.of == 1 else ""
                found = desk.answers(rank, order, failed=failed, awake={0, 1})
                assert not found.gone
                assert {one.judgement.outcome for one in found.said} <= {Outcome.PASSED, Outcome.UNDECIDED}


def test_a_check_to_which_nothing_was_handed_over_sets_a_key_back():
    desk = Conversation()
    desk.finish_checked(everybody())
    assert desk.checks.trust_in(2) == Trust(passed=1)
    desk.finish(everybody(round=1), 1)
    while asked := desk.asks():
        for rank, order in asked.items():
            desk.answers(rank, order, failed="not handed over" if order.of == 2 else "")
    assert desk.checks.trust_in(2) == Trust(passed=0)
    assert desk.checks.trust_in(3) == Trust(passed=2)


def test_a_trusted_key_is_hardly_checked():
    settings = CheckSettings(0.05, 2**30, lambda _: Trust(passed=100), lambda: 0.5)
    checks = SpotChecks(settings, steps=STEPS, batch=BATCH, from_the_start=True)
    checks.cut(1000, STEPS, 5)
    done = Finished(
        0,
        0,
        STEPS,
        1,
        True,
        {rank: [rank] for rank in range(5)},
        everybody(),
        dict.fromkeys(range(5), SIGNED),
        (),
        10.0,
        FAST,
    )
    assert not checks.breaches(done)
    assert not list(checks.draw(done))
    assert not list(checks.orders(EVERYBODY, EVERYBODY, 0.0))


# --- what it costs nothing to see


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        (report(samples=40), "it committed to 8 steps, and told of 40 samples"),
        (report(marks=[mark(0, START), mark(4, END), mark(8, END)]), "it did not commit to every 8 steps"),
        (report(marks=[mark(0, START)]), "it committed to 1 of 1 legs"),
        (report(marks=[mark(0, START), mark(8, END, leg=1)]), "it committed to 2 of 1 legs"),
        (report(marks=[], no_marks="no wish to"), "it committed to nothing, as the others did: no wish to"),
        (
            report(marks=[mark(0, [5.0] * 32), mark(8, END)]),
            "its steps did not begin from the weights that the others began from",
        ),
        (
            report(marks=[mark(0, START, memory=[3.0]), mark(8, END, memory=[4.0])]),
            "its optimiser does not continue from where it was after its last round",
        ),
        (
            report(marks=[mark(0, START), msgspec.structs.replace(mark(8, END), size=2**30)]),
            "what it committed to is too large",
        ),
    ],
)
def test_commitments_that_do_not_fit_together(odd, why):
    breaches, _ = Conversation().finish(everybody() | {3: odd})
    assert breaches == {3: why}


def test_whose_daemon_does_not_sign_what_it_reports_has_to_go():
    breaches, _ = Conversation().finish(everybody(), unsigned=[1])
    assert breaches == {1: "its daemon did not sign what it reported"}


def test_where_no_daemon_signs_nobody_has_to_go_and_nothing_is_checked():
    assert Conversation().finish(everybody(), unsigned=EVERYBODY) == (
        {},
        [ChecksImpossible("no peer's daemon signs reports")],
    )


def test_what_is_said_of_the_steps_of_others_without_a_signature_counts_for_nothing():
    desk = Conversation()
    desk.finish(everybody())
    rank, order = next(iter(desk.asks().items()))
    found = desk.answers(rank, order, end=FALSE, signed=False)
    assert found.gone == {rank: "it broke the protocol: its daemon did not sign what it said of others' steps"}
    assert not found.said
    assert order.of in {again.of for again in desk.asks(awake=EVERYBODY - {rank}).values()}  # somebody else is asked


def test_what_an_optimiser_remembers_goes_on_from_round_to_round():
    desk = Conversation(sure=0.01)

    def of(first, last, round):
        return report(round=round, marks=[mark(0, START, memory=first), mark(8, END, memory=last)])

    assert desk.finish({rank: of([], [1.0], 0) for rank in range(3)})[0] == {}
    assert desk.finish({rank: of([1.0], [2.0], 1) for rank in range(3)}, 1, unheard=[3])[0] == {}
    # The round after is redone from where the last one began, or goes on; anything else was made up.
    again = {0: of([2.0], [3.0], 2), 1: of([1.0], [3.0], 2), 2: of([1.5], [3.0], 2), 3: of([7.0], [8.0], 2)}
    assert list(desk.finish(again, 2)[0]) == [2]


def test_where_an_optimiser_comes_to_remember_far_more_is_looked_at_for_certain():
    settings = CheckSettings(0.001, 2**30, lambda _: Trust(passed=100), lambda: 0.99)
    checks = SpotChecks(settings, steps=STEPS, batch=BATCH, from_the_start=True)
    checks.cut(1000, STEPS, 5)
    usual = {rank: report(marks=[mark(0, START), mark(8, END, memory=[1.0])]) for rank in range(4)}
    reports = usual | {4: report(marks=[mark(0, START), mark(8, END, memory=[1e9])])}
    done = Finished(
        0,
        0,
        STEPS,
        1,
        True,
        {rank: [rank] for rank in range(5)},
        reports,
        dict.fromkeys(range(5), SIGNED),
        (),
        10.0,
        FAST,
    )
    assert not checks.breaches(done)
    assert not list(checks.draw(done))
    (asked,) = checks.orders(EVERYBODY, EVERYBODY, 0.0)
    assert asked.message.of == 4


def test_when_most_cannot_commit_to_anything_it_is_said_once_and_nobody_has_to_go():
    desk = Conversation()
    none = {rank: report(marks=[], no_marks="a reason") for rank in range(3)}
    assert desk.finish(none) == ({}, [ChecksImpossible("a reason")])
    assert desk.finish(none, 1) == ({}, [])
    assert desk.checks.cut(1000, STEPS, 5).every == 0


@pytest.mark.parametrize("seed", range(20))
def test_who_is_convicted_has_shown_as_much_as_evidence_has_to_show(seed):
    """Three segments a round; a third of the answers about own steps never come."""
    random, desk, convictions = Random(seed), Conversation(), []
    for round in range(8):
        members = [rank for rank in range(5) if not convictions or rank != 2]
        desk.finish({rank: in_three(round, lies=(rank, round) == (2, 1)) for rank in members}, round, every=3)
        for _ in range(3):
            for rank, order in desk.asks().items():
                if rank == order.of and random.random() < 1 / 3:
                    continue
                end = THIRDS[order.start.step + order.steps]
                found = desk.answers(rank, order, [end] * 32, [end - 0.1] * 32, at=order.start.step + order.steps)
                convictions += [told for told in found.said if isinstance(told, CheckEnded) and told.convicted]
            desk.now += 1000
            desk.checks.due(desk.now)
    (told,) = convictions
    assert told.convicted == [2]
    shown = {rank: [(one.round, one.step) for one in told.proofs if one.by == rank] for rank in (2, *told.by)}
    for by, steps in shown.items():
        committed = 3 * len({round for round, _ in steps} | ({told.round} if by == 2 else set())) - (by == 2)
        assert len(set(steps)) >= min(OWN_SEGMENTS, committed)


@pytest.mark.parametrize("seed", range(20))
def test_evidence_shows_no_steps_in_dispute_also_where_several_claims_of_a_member_are(seed):
    """It lies in two rounds, whose checks are under way together; about own steps it says what it said before."""
    random, desk, told, waiting, against = Random(seed), Conversation(), [], [], Counter()
    for round in range(8):
        members = [rank for rank in range(5) if rank != 2 or not any(one.convicted for one in told)]
        reports = {rank: in_three(round, lies=rank == 2 and round in (1, 2)) for rank in members}
        desk.finish(reports, round, every=3)
        for _ in range(6):
            waiting += [(rank, order) for rank, order in desk.asks().items() if rank in members]
            random.shuffle(waiting)
            for _ in range(len(waiting) // 2):
                rank, order = waiting.pop()
                at, lied = order.start.step + order.steps, rank == 2 == order.of and order.round in (1, 2)
                end = -0.4 if lied and at == 3 else THIRDS[at]
                found = desk.answers(rank, order, [end] * 32, [end - 0.1] * 32, at=at)
                told += found.said
                if found.taken and order.of == 2 != rank and order.round in (1, 2) and at == 3:
                    against[order.round] += 1
    (convicted,) = [one for one in told if one.convicted]
    assert convicted.convicted == [2]
    assert (convicted.round, convicted.first) not in [(one.round, one.step) for one in convicted.proofs if one.by == 2]
    false = sorted(one.round for one in told if one.judgement.outcome is Outcome.CONVICTED)
    assert false == sorted(round for round, several in against.items() if several == 2)


def test_evidence_needs_few_reports_also_where_each_answers_once_a_round():
    """A ledger takes evidence of a bounded size, and reports are most of it."""
    desk, convictions = Conversation(), []
    for round in range(14):
        members = [rank for rank in range(5) if not convictions or rank != 2]
        desk.finish({rank: in_three(round, lies=(rank, round) == (2, 1)) for rank in members}, round, every=3)
        for rank, order in desk.asks().items():
            end = THIRDS[order.start.step + order.steps]
            found = desk.answers(rank, order, [end] * 32, [end - 0.1] * 32, at=order.start.step + order.steps)
            convictions += [told for told in found.said if isinstance(told, CheckEnded) and told.convicted]
    (told,) = convictions
    for by in (2, *told.by):
        shown = [(one.round, one.step) for one in told.proofs if one.by == by]
        assert len(shown) >= OWN_SEGMENTS
        assert len({round for round, _ in shown}) <= 2


THIRDS = {0: 0.0, 3: 0.3, 6: 0.6, STEPS: 1.0}


def in_three(round, *, lies):
    """What a member commits to that cuts its steps into three segments. The end of the first may be a lie."""
    ends = THIRDS | ({3: -0.4} if lies else {})
    return report(round=round, marks=[mark(step, [end] * 32) for step, end in ends.items()])
