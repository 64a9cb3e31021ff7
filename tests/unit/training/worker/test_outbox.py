from __future__ import annotations

from axonp2p.jobs.output_messages import OutputPart
from axonp2p.sandbox.messages import Control, Started, ToMember
from axonp2p.training.messages import AskPieces, Piece, SlicePart, StateAdopted
from axonp2p.training.worker.outbox import MOST_PIECES, WorkerOutbox
from axonp2p.wire.frame import FRAME_COST, pack_frame, split_frame

PIECE = Piece(state=bytes(32), number=0)
ASK = AskPieces(state=bytes(32), numbers=[])


def said(outbox, most=100):
    """To whom, and how many bytes of payload each."""
    found = []
    while len(found) < most and (sent := outbox.next()):
        to = sent[0].rank if isinstance(sent[0], ToMember) else type(sent[0]).__name__
        found.append((to, len(split_frame(sent[1]).payload)) if sent[1] else to)
    return found


def test_small_words_come_before_bulk_and_need_no_credit():
    outbox = WorkerOutbox()
    outbox.credit(None, 10**6)
    outbox.report(PIECE, b"123456789")
    outbox.say(Started())
    outbox.report(StateAdopted(state=bytes(32)))
    assert said(outbox) == ["Started", ("Control", 0), ("Control", 9)]


def test_pieces_for_the_client_are_bulk_and_wait_for_credit():
    outbox = WorkerOutbox()
    outbox.report(PIECE, b"123456789")
    assert said(outbox) == []
    outbox.credit(None, 1)
    message, _ = outbox.next()
    assert message == Control(bulk=True)


def test_a_member_is_told_only_while_its_credit_is_above_nothing():
    outbox = WorkerOutbox()
    for _ in range(3):
        outbox.tell(1, PIECE, bytes(1000))
    assert said(outbox) == []
    outbox.credit(1, 1001)
    # The second falls below 0 by one message, as it may.
    assert said(outbox) == [(1, 1000)]
    outbox.credit(1, 10)
    assert said(outbox) == []
    outbox.credit(1, 1000)
    assert said(outbox) == [(1, 1000)]


def test_members_take_turns_and_one_without_credit_holds_nobody_up():
    outbox = WorkerOutbox()
    for _ in range(3):
        for rank in (1, 2, 3):
            outbox.tell(rank, PIECE, bytes(10 * rank))
    for rank in (1, 3):
        outbox.credit(rank, 10**6)
    assert [to for to, _ in said(outbox)] == [1, 3, 1, 3, 1, 3]


def test_asks_overtake_bulk_to_the_same_member():
    outbox = WorkerOutbox()
    outbox.credit(1, 10**6)
    outbox.tell(1, PIECE, bytes(10))
    outbox.tell(1, ASK)
    assert said(outbox) == [(1, 0), (1, 10)]


def test_pieces_of_a_state_go_when_no_part_of_a_slice_is_left_to_send():
    outbox = WorkerOutbox()
    for rank in (1, 2):
        outbox.credit(rank, 10**6)
        outbox.tell(rank, PIECE, bytes(10))
    for offset in (0, 1):
        part = SlicePart(round=0, attempt=0, exchange=0, phase="gather", slice=1, offset=offset, samples=1)
        outbox.tell(1, part, bytes(20))
    assert said(outbox) == [(1, 20), (1, 20), (2, 10), (1, 10)]


def test_what_is_useless_is_dropped_and_all_else_stays_in_order():
    outbox = WorkerOutbox()
    outbox.credit(1, 10**6)
    for attempt in (0, 1):
        part = SlicePart(round=0, attempt=attempt, exchange=0, phase="gather", slice=1, offset=0, samples=1)
        outbox.tell(1, part, bytes(attempt + 1))
    outbox.tell(1, PIECE, bytes(3))
    outbox.drop(lambda rank, message: isinstance(message, SlicePart) and message.attempt == 0)
    assert said(outbox) == [(1, 2), (1, 3)]


def test_who_asks_and_does_not_take_makes_nothing_grow():
    outbox = WorkerOutbox()
    outbox.credit(1, 10**9)
    for _ in range(2):
        for _ in range(3 * MOST_PIECES):
            outbox.tell(1, PIECE, b"piece")
        assert len(said(outbox, 10**6)) == MOST_PIECES


def test_small_messages_use_up_their_fixed_cost_too():
    outbox = WorkerOutbox()
    for _ in range(10):
        outbox.tell(1, ASK)
    packed = pack_frame(ASK, b"")
    outbox.credit(1, 3 * (len(packed) + FRAME_COST))
    assert said(outbox) == [(1, 0)] * 3


def test_files_of_the_task_come_last_as_far_as_there_is_credit_and_newer_ones_take_their_place():
    outbox = WorkerOutbox()
    taken = []

    def words(request):
        for number in range(3):
            taken.append((request, number))
            yield OutputPart(request=request, number=number, offset=0), bytes(1000)

    outbox.send_files(words(1))
    assert (said(outbox), taken) == ([], [])
    outbox.credit(None, 1)
    outbox.report(PIECE, bytes(9))
    assert said(outbox) == [("Control", 9)]
    outbox.credit(None, 10**3)
    assert said(outbox) == [("Control", 1000)]
    outbox.send_files(words(2))
    outbox.credit(None, 10**6)
    assert said(outbox) == [("Control", 1000)] * 3
    assert taken == [(1, 0), (2, 0), (2, 1), (2, 2)]
