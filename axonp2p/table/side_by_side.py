"""The same question to several trackers, side by side: one that says nothing holds up none of those that answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from axonp2p.supervision import cancel_and_wait
from axonp2p.table.asking_order import TRACKER_PATIENCE_S

Source = TypeVar("Source")
Answer = TypeVar("Answer")


async def ask_all(
    sources: Sequence[Source],
    ask: Callable[[Source], Coroutine[Any, Any, Answer]],
    *,
    is_answer: Callable[[Answer], bool],
    late: Callable[[Source, float], Answer],
) -> list[Answer]:
    """The answers of `ask` for each, in their order; it bounds its own time, and raises nothing of the family.

    Once one has given what `is_answer`, the others have `TRACKER_PATIENCE_S` more; `late` stands for those that took
    longer, and hears how many seconds they had.
    """
    clock = asyncio.get_running_loop().time
    began = clock()
    tasks = [asyncio.create_task(ask(source)) for source in sources]
    waiting, until = set(tasks), None
    try:
        while waiting:
            left = None if until is None else max(0.0, until - clock())
            done, waiting = await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                break
            if until is None and any(is_answer(task.result()) for task in done):
                until = clock() + TRACKER_PATIENCE_S
        seconds = clock() - began
    finally:
        await cancel_and_wait(*tasks)
    return [
        late(source, seconds) if task in waiting else task.result() for source, task in zip(sources, tasks, strict=True)
    ]
