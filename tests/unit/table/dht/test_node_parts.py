"""The small deciding parts of a node: whom it lets in, how deep sets are, what is kept of rows and of contacts."""

from __future__ import annotations

import json
from pathlib import Path

from axonp2p.table.dht.records.compact import sign_compact, withdrawal_of
from axonp2p.table.dht.records.index_keys import MOST_CLASSES, SetDepths
from axonp2p.table.dht.records.row_sample import RowSample
from axonp2p.table.dht.routing.node_state import LARGEST_FILE, MOST_SAVED, SavedContact, load_state, save_state
from peer_daemon.discovery.reachability import should_serve
from tests.fakes import NOW, key_of
from tests.unit.table.dht.dht_nodes import compact_row

LATER = int(NOW) + 600


def test_depths_are_learnt_and_bounded() -> None:
    depths = SetDepths()
    assert depths.of("all") == 0
    depths.learn("all", 3)
    assert depths.of("all") == 3
    depths.learn("all", 0)
    assert depths.of("all") == 0
    depths.learn("first", 1)
    for number in range(MOST_CLASSES):
        depths.learn(f"class {number}", 2)
    assert depths.of("first") == 0


def test_a_sample_keeps_the_newest_true_row_of_each_peer() -> None:
    key = key_of("anna")
    rows = [compact_row("anna", sequence=number, expires=LATER) for number in (1, 3, 2)]
    sample = RowSample()
    sample.add([sign_compact(key, row) for row in rows], NOW)
    assert sample.of(rows[0].public_key) == rows[1]
    false = bytearray(sign_compact(key, compact_row("anna", sequence=9, expires=LATER)))
    false[5] ^= 1
    sample.add([bytes(false), b"", b"garbage", sign_compact(key, compact_row("anna", sequence=8, expires=9))], NOW)
    assert sample.rows() == [rows[1]]
    assert sample.false == 4
    sample.add([sign_compact(key, withdrawal_of(rows[1], 4, LATER))], NOW)
    sample.add([sign_compact(key, rows[1])], NOW)
    assert sample.rows() == []


def test_a_true_row_in_a_wrong_place_is_not_taken() -> None:
    row = compact_row("anna", expires=LATER)
    sample = RowSample()
    assert sample.add([sign_compact(key_of("anna"), row)], NOW, lambda row: False) == set()
    assert sample.false == 1
    assert sample.rows() == []
    assert sample.add([sign_compact(key_of("anna"), row)], NOW, lambda row: True) == {row.public_key}


def test_of_two_rows_with_one_number_everybody_keeps_the_same() -> None:
    key = key_of("anna")
    two = [sign_compact(key, compact_row("anna", cores=cores, expires=LATER)) for cores in (2, 4)]
    one, other = RowSample(), RowSample()
    one.add(two, NOW)
    other.add(reversed(two), NOW)
    assert one.rows() == other.rows()


def test_a_tracker_s_word_or_the_own_address_makes_a_node_serve() -> None:
    assert should_serve(True, None, [], 7071)
    assert not should_serve(False, "192.0.2.1:7071", ["192.0.2.1"], 7071)
    assert should_serve(None, "192.0.2.1:7071", ["192.0.2.1"], 7071)
    assert not should_serve(None, "192.0.2.1:5", ["192.0.2.1"], 7071)
    assert not should_serve(None, "198.51.100.1:7071", ["192.0.2.1"], 7071)
    assert not should_serve(None, None, ["192.0.2.1"], 7071)
    assert not should_serve(None, "nonsense", ["192.0.2.1"], 7071)


def test_contacts_survive_a_restart_latest_first_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "dht.json"
    save_state(path, (SavedContact(f"192.0.2.1:{port}", NOW + port) for port in range(1, 300)))
    loaded = load_state(path, NOW)
    assert len(loaded) == MOST_SAVED
    assert loaded[0] == SavedContact("192.0.2.1:299", NOW + 299)
    assert load_state(path, NOW + 31 * 86400) == []


def test_a_broken_state_file_is_no_state(tmp_path: Path) -> None:
    path = tmp_path / "dht.json"
    assert load_state(path, NOW) == []
    good = {"contacts": [{"address": "192.0.2.1:7", "heard": NOW}]}
    changes = ("", "{}", "[1]", '{"contacts": 3}', json.dumps({"contacts": [{"address": "x", "heard": 1}]}))
    for content in (*changes, json.dumps(good) + " " * LARGEST_FILE, json.dumps(good)[:-1]):
        path.write_text(content)
        assert load_state(path, NOW) == []
    path.write_text(json.dumps(good))
    assert load_state(path, NOW) == [SavedContact("192.0.2.1:7", NOW)]
