"""One table out of what several sources say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from axonp2p.table.sightings import DHT, Sight, SourceAnswer, merged
from tests.fakes import key_of, make_row

ADA, BEN = key_of("ada"), key_of("ben")


def answer(source: str, *rows: object, **changes: object) -> SourceAnswer:
    return SourceAnswer(source, 0.1, rows, **changes)  # type: ignore[arg-type]


def test_the_newest_row_wins_and_who_had_it_is_told() -> None:
    old, new, other = make_row(ADA, sequence=1), make_row(ADA, sequence=2), make_row(BEN)
    ada, ben = merged([answer("tracker one", old, other), answer("tracker two", new), answer(DHT, new)])
    assert (ada.row, ada.sources, ada.stale) == (new, ("tracker two", DHT), ("tracker one",))
    assert (ben.row, ben.sources, ben.stale) == (other, ("tracker one",), ())


NUMBERS = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3), max_size=5)


@given(NUMBERS)
def test_the_highest_number_wins_in_any_order(numbers: list[list[int]]) -> None:
    answers = [answer(f"tracker {n}", *(make_row(ADA, sequence=one) for one in of)) for n, of in enumerate(numbers)]
    for order in (answers, answers[::-1]):
        rows = [seen.row.sequence for seen in merged(order)]
        assert rows == ([max(max(of) for of in numbers)] if numbers else [])


def test_of_what_sources_count_the_largest_is_told() -> None:
    sight = Sight(
        rows=[],
        answers=[answer("tracker one", fitting=3, alive=5), answer("tracker two", trouble="away")],
        silent={},
        complete=True,
    )
    assert (sight.fitting, sight.alive, [one.source for one in sight.heard]) == (3, 5, ["tracker one"])
