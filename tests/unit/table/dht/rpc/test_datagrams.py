"""The DHT's datagrams: what is said is read again, and whatever else comes is refused by one error."""

from __future__ import annotations

from functools import partial

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage
from axonp2p.table.dht.rpc.datagrams import decode_answer, decode_call, encode_answer, encode_call, kind_of
from axonp2p.table.dht.rpc.rpc import (
    ANSWER,
    FRAME_BYTES,
    LARGEST_DATAGRAM,
    REQUEST,
    Answer,
    Call,
    Find,
    FindAnswer,
    Get,
    GetAnswer,
    Hi,
    HiAnswer,
    Put,
    PutAnswer,
    Question,
    room_for_answer,
)

KEY, NUMBER, CALLER = b"k" * 20, b"n" * 20, b"c" * 20
HI = Hi(b"?" * 16)
FIND = Find(KEY, b"t" * 8, b"p" * 8)
GET = Get(KEY, b"", b"p" * 8)
PUT = Put(KEY, 3, b"t" * 8, b"record")
PAIRS: list[tuple[Question, Answer]] = [
    (HI, HiAnswer(b"k" * 32, b"s" * 64, b"t" * 8, b"\x7f\0\0\1\x1b\x9f", b"", True)),
    (FIND, FindAnswer([b"c" * 26, b"d" * 38], b"t" * 8, [b"row"], 7, False)),
    (GET, GetAnswer([b"row", b"other"], 300, True)),
    (PUT, PutAnswer("stored")),
]
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.binary(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(("question", "answer"), PAIRS)
def test_questions_and_answers_are_read_as_they_were_written(question: Question, answer: Answer) -> None:
    call = Call(NUMBER, CALLER, True, question)
    datagram = encode_call(call)
    assert kind_of(datagram) == (REQUEST, NUMBER)
    assert decode_call(datagram) == call
    said = encode_answer(NUMBER, answer)
    assert kind_of(said) == (ANSWER, NUMBER)
    assert decode_answer(said, question) == answer


@pytest.mark.parametrize("question", [FIND, GET])
def test_a_question_is_padded_and_read_the_same(question: Question) -> None:
    call = Call(NUMBER, CALLER, False, question)
    padded = encode_call(call, 400)
    assert 400 <= len(padded) <= 402
    assert decode_call(padded) == call


@given(st.binary(max_size=1500))
def test_chance_bytes_are_refused_by_one_error(data: bytes) -> None:
    for refuse in (kind_of, decode_call, *(partial(decode_answer, question=question) for question, _ in PAIRS)):
        try:
            refuse(data)
        except MalformedMessage:
            continue


@given(plain)
def test_any_msgpack_is_refused_by_one_error(value: object) -> None:
    datagram = b"\1" + NUMBER + msgpack.packb(value)
    for refuse in (decode_call, *(partial(decode_answer, question=question) for question, _ in PAIRS)):
        try:
            refuse(datagram)
        except MalformedMessage:
            continue


@given(st.sampled_from(PAIRS), st.data())
def test_one_changed_byte_is_a_message_or_refused(pair: tuple[Question, Answer], data: st.DataObject) -> None:
    question, answer = pair
    for datagram in (encode_call(Call(NUMBER, CALLER, True, question)), encode_answer(NUMBER, answer)):
        place = data.draw(st.integers(0, len(datagram) - 1))
        changed = datagram[:place] + bytes([data.draw(st.integers(0, 255))]) + datagram[place + 1 :]
        for read in (decode_call, partial(decode_answer, question=question)):
            try:
                read(changed)
            except MalformedMessage:
                continue


@pytest.mark.parametrize(
    "body",
    [
        ["find", [CALLER, True, b"k" * 19, b"", b"", b""]],
        ["find", [CALLER, 1, KEY, b"", b"", b""]],
        ["find", [CALLER, True, KEY, b"", b"", "text"]],
        ["find", [CALLER, True, KEY, b"1234567", b"", b""]],
        ["put", [CALLER, True, KEY, 25, b"t" * 8, b"row"]],
        ["put", [CALLER, True, KEY, True, b"t" * 8, b"row"]],
        ["put", [CALLER, True, KEY, 0, b"t" * 8, b"x" * 321]],
        ["put", [CALLER, True, KEY, 0, b"t" * 8, b""]],
        ["hi", [CALLER, True, b"short"]],
        ["hi", [CALLER, True]],
        ["hi", []],
        ["stun", [CALLER, True, b"?" * 16]],
        [["hi"], [CALLER, True, b"?" * 16]],
    ],
)
def test_a_question_with_a_wrong_field_is_refused(body: object) -> None:
    with pytest.raises(MalformedMessage):
        decode_call(b"\0" + NUMBER + msgpack.packb(body))


@pytest.mark.parametrize(
    ("question", "body"),
    [
        (FIND, [[b"c" * 26] * 17, b"", [], 0, False]),
        (FIND, [[b"c" * 39], b"", [], 0, False]),
        (FIND, [[], b"", [b"r"] * 9, 0, False]),
        (FIND, [[], b"", [b"r" * 321], 0, False]),
        (FIND, [[], b"", [], -1, False]),
        (FIND, [[], b"", [], 2**40, False]),
        (FIND, {}),
        (GET, [[], 0]),
        (PUT, 3),
        (HI, [b"k" * 32, b"s" * 63, b"", b"123456", b"", True]),
    ],
)
def test_an_answer_with_a_wrong_field_is_refused(question: Question, body: object) -> None:
    with pytest.raises(MalformedMessage):
        decode_answer(b"\1" + NUMBER + msgpack.packb(body), question)


def test_too_large_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(MalformedMessage):
        kind_of(b"\0" * (LARGEST_DATAGRAM + 1))
    with pytest.raises(MalformedMessage):
        kind_of(b"\0" * FRAME_BYTES)


def test_an_unproven_address_gets_three_times_what_it_sent() -> None:
    assert room_for_answer(90, False) == 270
    assert room_for_answer(90, True) == LARGEST_DATAGRAM
    assert room_for_answer(1200, False) == LARGEST_DATAGRAM
