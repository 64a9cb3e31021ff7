"""Logs as a person at a terminal reads them."""

from __future__ import annotations

from axonp2p.log_sentences import sentence_of
from peer_daemon.log_sentences import SENTENCES


def test_an_event_with_a_template_is_a_sentence() -> None:
    told = {"event": "announced", "level": "info", "timestamp": "14:10:02", "tracker": "tracker lab:7070", "free": 1}
    assert sentence_of(told, SENTENCES) == "14:10:02  Announced to tracker lab:7070: others can find this machine."


def test_reason_cause_and_fix_are_told() -> None:
    told = {
        "event": "not announced",
        "level": "warning",
        "timestamp": "14:10:02",
        "tracker": "tracker lab",
        "reason": "tracker lab cannot be reached",
        "cause": "the address lacks #FINGERPRINT",
        "fix": "copy the whole address",
    }
    assert sentence_of(told, SENTENCES) == (
        "14:10:02  warning: Not announced: tracker lab cannot be reached (the address lacks #FINGERPRINT).\n"
        "          fix: copy the whole address"
    )


def test_an_event_without_one_has_its_facts_in_brackets() -> None:
    told = {"event": "bundle continued", "level": "info", "timestamp": "14:10:02", "pieces": 3, "of": 7}
    assert sentence_of(told, {}) == "14:10:02  Bundle continued (pieces 3, of 7)"


def test_a_fact_that_is_missing_or_hostile_breaks_nothing() -> None:
    assert sentence_of({"event": "announced", "level": "info"}, SENTENCES) == "Announced"
    told = {"event": "lease taken", "level": "info", "job": "\x1b[2J{x}", "client": "c", "cores": 1, "memory_mb": 2}
    assert "\x1b" not in sentence_of(told, SENTENCES)


def test_strangers_words_make_no_line_of_their_own() -> None:
    forged = "no\n14:10:03  READY: nothing else needs the machine"
    told = {"event": "not announced", "level": "warning", "timestamp": "14:10:02", "reason": forged, "cause": forged}
    for templates in (SENTENCES, {}):
        said = sentence_of(told | {"tracker": forged, "fix": forged}, templates)
        assert [line[:8] for line in said.splitlines()] == ["14:10:02", " " * 8]
