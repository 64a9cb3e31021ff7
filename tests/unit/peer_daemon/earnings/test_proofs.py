"""When trackers' logs are looked at again, and what the owner is told."""

from __future__ import annotations

from peer_daemon.control.status import LedgerNow, LogNow
from peer_daemon.earnings.proofs import AT_LEAST_EVERY_S, EVERY_S, MOST_ASKED, MOST_TOLD, Proofs
from peer_daemon.page.words import proof

NOW = 1_800_000_000.0


def looked(name: str, at: float = NOW, wrong: str = "") -> LogNow:
    return LogNow(tracker=name, at=at, proved=6, entries=100, counts=12.0, wrong=wrong)


def test_it_is_looked_at_most_every_ten_minutes_and_only_for_news_or_after_hours():
    proofs = Proofs()
    assert not proofs.is_due(NOW, 0)  # there is nothing to be proved
    assert proofs.is_due(NOW, 5)
    proofs.begin(NOW, 5)
    proofs.found(looked("lab"))
    assert not proofs.is_due(NOW + EVERY_S - 1, 6)
    assert proofs.is_due(NOW + EVERY_S, 6)
    assert not proofs.is_due(NOW + EVERY_S, 5)
    assert proofs.is_due(NOW + AT_LEAST_EVERY_S, 5)
    assert proofs.is_due(NOW - 3600, 5)  # the clock was set back


def test_who_found_nobody_looks_again_after_ten_minutes_and_says_so():
    proofs = Proofs()
    proofs.begin(NOW, 5)
    proofs.found_nothing("no tracker answers")
    assert proofs.told() == LedgerNow(silent="no tracker answers", silent_at=NOW)
    assert not proofs.is_due(NOW + EVERY_S - 1, 5)
    assert proofs.is_due(NOW + EVERY_S, 5)
    proofs.begin(NOW + EVERY_S, 5)
    proofs.found(looked("lab", NOW + EVERY_S))
    assert proofs.told() == LedgerNow(logs=[looked("lab", NOW + EVERY_S)])


def test_trackers_take_turns():
    proofs = Proofs()
    trackers = [(name, name.upper()) for name in ("a", "b", "c", "d")]
    proofs.found(looked("a", NOW - 1))
    proofs.found(looked("b", NOW - 2))
    assert proofs.whom(trackers) == ["C", "D", "B"]
    assert len(proofs.whom(trackers)) == MOST_ASKED


def test_the_last_look_is_told_first_and_what_was_false_stays():
    proofs = Proofs()
    proofs.found(looked("liar", wrong="its log is false"))
    for number in range(2 * MOST_TOLD):
        proofs.found(looked(f"lab {number}"))
    told = [one.tracker for one in proofs.told().logs]
    assert told[0] == f"lab {2 * MOST_TOLD - 1}"
    assert len(told) == MOST_TOLD
    assert told[-1] == "liar"
    proofs.found(looked("liar"))
    assert proofs.told().logs[0] == looked("liar")


def test_what_was_found_is_one_sentence():
    assert proof(looked("lab")) == "6 receipts that were picked are proved to be in its log of 100 receipts"
    assert proof(LogNow(tracker="lab", at=NOW, proved=1, entries=1)).startswith("one receipt that was picked is")
    assert proof(LogNow(tracker="lab", at=NOW)) == "what was picked has not come there yet"
    assert proof(looked("lab", wrong="its log is false: why")) == "its log is false: why"
