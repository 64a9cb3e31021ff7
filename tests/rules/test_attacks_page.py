"""docs/attacks.md names exactly the attacks that there are, and says of each what stops it."""

from __future__ import annotations

import re
from pathlib import Path

from axonp2p.sandbox.attacks import each_wall
from tests.system.sandbox.hostile.all_jobs import JOBS
from tests.system.sandbox.hostile.light.inside import ATTACKS

PAGE = Path(__file__).parent.parent.parent / "docs" / "attacks.md"


def test_the_page_names_exactly_the_attacks_that_there_are() -> None:
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text().splitlines() if line[:3] == "| `"
    ]
    names = [row[0].strip("`") for row in rows]
    assert sorted(names) == sorted([*(attack.name for attack in ATTACKS), *JOBS])
    assert len(set(names)) == len(names)
    assert all(cell for row in rows for cell in row)


def test_every_attack_says_what_it_tries() -> None:
    for attack in (*ATTACKS, *JOBS.values()):
        assert attack.tries.startswith("tries "), attack.name


def test_the_page_names_the_attacks_of_the_doctor() -> None:
    opening = PAGE.read_text().partition("\n## ")[0]
    assert set(re.findall(r"`([a-z0-9-]+)`", opening)) == {attack.name for attack in each_wall.ATTACKS}
