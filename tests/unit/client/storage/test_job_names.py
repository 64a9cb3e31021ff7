"""The beginning of an id: what it fits, and what is said when that is nothing, or too much."""

from __future__ import annotations

from axonp2p.client.storage.job_names import SHOWN, matching, no_such_job, several

NAMES = ["long-4089", "long-7a3e", "digits-7f3a"]


def test_an_exact_name_wins_and_an_empty_one_fits_nothing() -> None:
    assert matching(["a", "a-1"], "a") == ["a"]
    assert matching(NAMES, "long") == ["long-4089", "long-7a3e"]
    assert matching(NAMES, "") == matching(NAMES, "none") == []


def test_several_are_named_and_many_are_counted() -> None:
    error = several("long", NAMES[:2])
    assert (error.message, error.code) == ("long matches long-4089 and long-7a3e", "AX-502")
    assert "long-4089" in error.fix
    assert several("x", [f"x-{number}" for number in range(SHOWN + 3)]).message.endswith("and 3 more")


def test_a_mistyped_id_is_told_which_are_alike() -> None:
    assert no_such_job("digts", NAMES).cause == "did you mean digits-7f3a?"
    assert no_such_job("zzz", []).cause == ""
    assert no_such_job("zzz", NAMES).message == "no job matches zzz"
