"""The words and the variables of one copy. Pure."""

from __future__ import annotations

import shlex

from axonp2p.kinds.run.messages import BeginCopy
from axonp2p.kinds.run.section import RunSection


def order_for(job: str, section: RunSection, index: int, attempt: int) -> BeginCopy:
    """What a worker is told to begin."""
    return BeginCopy(
        job=job,
        index=index,
        copies=section.copies,
        attempt=attempt,
        command=words_of(section, index, attempt),
        env=section.env,
        timeout=section.timeout,
    )


def words_of(section: RunSection, index: int, attempt: int) -> list[str]:
    """The command in words, with this copy's own numbers in them."""
    numbers = {"{index}": index, "{copies}": section.copies, "{attempt}": attempt}
    words = shlex.split(section.command)
    for placeholder, number in numbers.items():
        words = [word.replace(placeholder, str(number)) for word in words]
    return words
