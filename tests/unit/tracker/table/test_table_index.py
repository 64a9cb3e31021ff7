from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.errors import Busy
from axonp2p.identity.keys import SIGNATURE_BYTES, PrivateKey
from axonp2p.peers.capability import Capability, Gpu, Need, why_not
from axonp2p.peers.coordinates import Coordinate, write_coordinate
from axonp2p.table.records import Row
from axonp2p.table.slots import supersedes
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed
from tests.fakes import NOW, key_of, make_offer, make_row
from tracker.table import offer_profiles
from tracker.table.table_index import REMEMBERED_S, TableIndex

KEYS = [key_of(f"peer {number}") for number in range(12)]


def index_of() -> TableIndex:
    return TableIndex(random.Random(7))


def put(index: TableIndex, key: PrivateKey, offer: Capability | None, now: float = NOW, **changes: Any) -> bytes:
    row = make_row(key, now=now, **({"capability": None} if offer is None else {}), **changes)
    # The index never looks at signatures: they were checked at the door.
    signed: Signed[Row] = Signed(signer=key.peer_id, payload=encode(row), signature=b"s" * 64)
    index.put(signed, row, offer, forget_at=now + REMEMBERED_S, now=now)
    return signed.payload


def found(index: TableIndex, need: Need | None = None, count: int = 200, now: float = NOW) -> set[str]:
    return {signed.signer for signed in index.find(need or Need(), count, now).rows}


def test_who_fits_is_found():
    index = index_of()
    put(index, KEYS[0], make_offer(cores=2))
    put(index, KEYS[1], make_offer(cores=8))
    answer = index.find(Need(cores=4), 10, NOW)
    assert [signed.signer for signed in answer.rows] == [KEYS[1].peer_id]
    assert (answer.fitting, answer.alive) == (1, 2)


def test_a_newer_row_replaces_and_an_older_one_does_not():
    index = index_of()
    put(index, KEYS[0], make_offer(cores=2), sequence=5)
    put(index, KEYS[0], make_offer(cores=8), sequence=4)
    assert not found(index, Need(cores=4))
    put(index, KEYS[0], make_offer(cores=8), sequence=6)
    assert found(index, Need(cores=4))
    assert len(index) == 1


def test_a_withdrawn_peer_is_not_found_and_its_number_is_kept():
    index = index_of()
    put(index, KEYS[0], make_offer(), sequence=5)
    put(index, KEYS[0], None, sequence=6)
    assert not found(index)
    assert index.alive(NOW) == 0
    assert index.offer_of(KEYS[0].peer_id, NOW) is None
    put(index, KEYS[0], make_offer(), sequence=5)
    assert not found(index)


def test_an_expired_row_is_no_row_and_is_forgotten_later():
    index = index_of()
    put(index, KEYS[0], make_offer(), expires=int(NOW) + 60)
    assert found(index, now=NOW + 59)
    assert not found(index, now=NOW + 60)
    assert index.alive(NOW + 60) == 0
    assert KEYS[0].peer_id in index
    index.advance(NOW + REMEMBERED_S)
    assert KEYS[0].peer_id not in index


def test_a_renewed_row_outlives_the_one_before():
    index = index_of()
    put(index, KEYS[0], make_offer(), sequence=1, expires=int(NOW) + 60)
    put(index, KEYS[0], make_offer(), now=NOW + 30, sequence=2, expires=int(NOW) + 120)
    assert found(index, now=NOW + 90)
    assert not found(index, now=NOW + 120)


def test_a_peer_that_does_not_know_its_address_yet_lives_but_is_not_found():
    index = index_of()
    put(index, KEYS[0], make_offer(), addresses=[])
    assert index.alive(NOW) == 1
    assert index.offer_of(KEYS[0].peer_id, NOW) is not None
    assert not found(index)


def test_a_sample_has_no_favourites():
    index = index_of()
    for number, key in enumerate(KEYS):
        put(index, key, make_offer(memory_mb=1000 + number % 3))
    seen = Counter(peer for _ in range(600) for peer in found(index, count=3))
    assert set(seen) == {key.peer_id for key in KEYS}
    assert min(seen.values()) > 600 * 3 / len(KEYS) / 2


def test_announcing_without_pause_fills_no_memory():
    index = index_of()
    put(index, KEYS[0], make_offer())
    for sequence in range(2, 2000):
        put(index, KEYS[1], make_offer(packages={"numpy": f"1.{sequence}"}), sequence=sequence)
    assert len(index._peers) == len(found(index)) == len(index._profiles) == 2
    assert not found(index, now=NOW + 600)


def test_peers_alike_share_a_profile():
    index = index_of()
    for number, key in enumerate(KEYS):
        put(index, key, make_offer(gflops=float(number), disk_mb=number, free=1 + number % 2))
    assert len(index._profiles) == 1


def test_a_silent_peer_is_not_found_until_it_speaks_again():
    index = index_of()
    put(index, KEYS[0], make_offer(), sequence=5)
    assert not index.mark_silent(KEYS[0].peer_id, 4)
    assert index.mark_silent(KEYS[0].peer_id, 5)
    assert not found(index)
    assert index.offer_of(KEYS[0].peer_id, NOW) is None
    put(index, KEYS[0], make_offer(), sequence=6)
    assert found(index)


def test_uptime_counts_from_the_last_break():
    index = index_of()
    put(index, KEYS[0], make_offer(), sequence=1)
    put(index, KEYS[0], make_offer(), now=NOW + 500, sequence=2)
    put(index, KEYS[1], make_offer(), sequence=1)
    put(index, KEYS[1], make_offer(), now=NOW + 700, sequence=2)
    assert found(index, Need(uptime_s=600), now=NOW + 800) == {KEYS[0].peer_id}


def test_the_nearest_come_first_and_the_unknown_last():
    index = index_of()
    places = {KEYS[0]: 40.0, KEYS[1]: 5.0, KEYS[2]: 90.0}
    for key, far in places.items():
        put(index, key, make_offer(), coordinate=at(far))
    put(index, KEYS[3], make_offer())
    nearest = [signed.signer for signed in index.find(Need(), 10, NOW, at(0.0)).rows]
    assert nearest == [KEYS[number].peer_id for number in (1, 0, 2, 3)]
    assert [signed.signer for signed in index.find(Need(), 1, NOW, at(100.0)).rows] == [KEYS[2].peer_id]


def test_a_place_is_used_again_and_its_old_words_are_gone():
    index = index_of()
    put(index, KEYS[0], make_offer(datasets=["digits"]))
    assert index.advance(NOW + REMEMBERED_S) == [0]
    put(index, KEYS[1], make_offer(), now=NOW + REMEMBERED_S)
    assert len(index._peers) == 1
    assert not found(index, Need(datasets=["digits"]), now=NOW + REMEMBERED_S)


@pytest.mark.parametrize("others", [0, 9])
def test_of_two_rows_of_one_peer_that_are_entered_together_the_later_stays(others: int):
    index = index_of()
    first = put(index, KEYS[0], make_offer(cores=2), sequence=5)
    entries = []
    for key, sequence in [*((KEYS[1 + number], 1) for number in range(others)), (KEYS[0], 6), (KEYS[0], 7)]:
        row = make_row(key, sequence=sequence)
        signed: Signed[Row] = Signed(signer=key.peer_id, payload=encode(row), signature=b"s" * 64)
        entries.append(index.prepare(signed, row, make_offer(cores=sequence), forget_at=NOW + 999, now=NOW))
    before = index.enter(entries)
    assert before[:others] == [None] * others
    assert [known and known.payload for known in before[others:]] == [first, entries[-2].body[SIGNATURE_BYTES:]]
    assert index.sequence_of(KEYS[0].peer_id) == 7
    assert found(index, Need(cores=7)) == {KEYS[0].peer_id}


def test_too_many_sets_of_words_cost_none_its_place(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(offer_profiles, "MOST_PROFILES", 3)
    monkeypatch.setattr(offer_profiles, "MOST_VERSIONS", 2)
    index = index_of()
    for number, key in enumerate(KEYS):
        put(index, key, make_offer(packages={"numpy": f"2.{number}"}))
    assert len(index._profiles) <= 4
    assert len(found(index)) == len(KEYS) - 1 or len(found(index)) == len(KEYS)
    assert found(index, Need(packages=["numpy>=2.1"])) == {KEYS[1].peer_id}


def test_a_need_costs_its_clauses_times_the_versions_and_the_second_time_nothing():
    index = index_of()
    for number, key in enumerate(KEYS):
        put(index, key, make_offer(packages={"numpy": f"2.{number}", "torch": "2.13.0"}))
    asked = Need(packages=["numpy>=2,<3,!=2.1", "torch", "scipy>=1"])
    assert index.comparisons(Need()) == 0
    assert index.comparisons(asked) == 3 * len(KEYS) + 1
    index.find(asked, 10, NOW)
    assert index.comparisons(asked) == 0


def test_a_need_of_too_many_comparisons_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(offer_profiles, "MOST_COMPARISONS", 2 * len(KEYS))
    index = index_of()
    for number, key in enumerate(KEYS):
        put(index, key, make_offer(packages={"numpy": f"2.{number}"}))
    assert index.comparisons(Need(packages=["numpy>=2,<3"])) == 2 * len(KEYS)
    with pytest.raises(Busy, match="too many versions"):
        index.comparisons(Need(packages=["numpy>=2,!=2.1,<3"]))


def test_nothing_is_compared_any_more_once_nobody_is_left(monkeypatch: pytest.MonkeyPatch):
    index = index_of()
    for number, key in enumerate(KEYS):
        put(index, key, make_offer(packages={"numpy": f"2.{number}"}))
    compared: list[str] = []
    monkeypatch.setattr(offer_profiles, "meets_requirement", lambda text, version: compared.append(text))
    assert not found(index, Need(packages=["scipy", "numpy>=2"]))
    assert not compared


def at(far: float) -> bytes:
    return write_coordinate(Coordinate((far, 0.0, 0.0, 0.0), 1.0, 0.1))


offers = st.builds(
    make_offer,
    cores=st.integers(1, 3),
    memory_mb=st.sampled_from([512, 1024]),
    free=st.integers(0, 2),
    gflops=st.floats(1, 100),
    kinds=st.sampled_from([["train"], ["infer"], ["train", "infer"]]),
    refuses=st.sampled_from(["", "paused"]),
    disk_mb=st.sampled_from([1024, 8192]),
    datasets=st.sampled_from([[], ["digits"], ["text", "digits"]]),
    upload_mbit=st.sampled_from([0, 20]),
    gpus=st.lists(
        st.builds(
            Gpu,
            name=st.just("a"),
            memory_mb=st.sampled_from([4096, 8192]),
            capability=st.sampled_from([msgspec.UNSET, "7.5", "10.0"]),
            taken=st.sampled_from([msgspec.UNSET, True]),
        ),
        max_size=2,
    ),
    packages=st.sampled_from([{}, {"numpy": "2.4.6"}, {"numpy": "1.0", "torch": "2.13.0"}]),
)
needs = st.builds(
    Need,
    kind=st.sampled_from(["train", "infer"]),
    cores=st.integers(1, 3),
    memory_mb=st.sampled_from([0, 1024]),
    packages=st.sampled_from([[], ["numpy>=2"], ["torch"]]),
    disk_mb=st.sampled_from([0, 4096]),
    gflops=st.sampled_from([0, 50]),
    datasets=st.sampled_from([[], ["digits"], ["digits", "text"]]),
    upload_mbit=st.sampled_from([0, 10]),
    gpu_memory_mb=st.sampled_from([0, 8192]),
    gpu_capability=st.sampled_from(["", "8.0"]),
    also_taken=st.booleans(),
)
steps = st.lists(
    st.tuples(
        st.sampled_from(range(len(KEYS))),
        st.one_of(st.none(), offers),
        st.integers(0, 6),
        st.integers(1, 900),
        st.integers(0, 300),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(steps, needs)
def test_the_index_finds_what_a_plain_list_of_rows_would(steps, need: Need):
    index, now = index_of(), NOW
    plain: dict[str, tuple[int, float, Capability | None, bytes]] = {}
    for number, offer, sequence, life, pause in steps:
        key = KEYS[number]
        now += pause
        payload = put(index, key, offer, now, sequence=sequence, expires=int(now) + life)
        known = plain.get(key.peer_id)
        if known is None or supersedes(sequence, payload, known[0], known[3]):
            plain[key.peer_id] = (sequence, int(now) + life, offer, payload)
    alive = {peer: offer for peer, (_, expires, offer, _) in plain.items() if offer is not None and expires > now}
    assert index.alive(now) == len(alive)
    assert found(index, need, now=now) == {peer for peer, offer in alive.items() if not why_not(offer, need)}
    index.advance(now + REMEMBERED_S)
    assert len(index) == 0
    assert not len(index._profiles)
