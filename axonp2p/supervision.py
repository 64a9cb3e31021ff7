"""The edges of supervised tasks: what nobody thought of ends one look, link or lease, is told once, and others go on.

`one_look` stands around what is done for one tracker, peer or member. An exception of a kind that its caller expects
(`AxonError`) passes; any other becomes an `AxonError`, so that the caller goes on as it does when that one fails.
`keep_up` stands around a task that a program cannot do without: it is begun again, after pauses that grow.
Compare Erlang's supervisors and syncthing's suture. No broad `except` stands anywhere else but at a program's top.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from axonp2p.errors import AxonError
from axonp2p.logs import get_logger

log = get_logger(__name__)

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
_MOST_TOLD = 256
_told: dict[tuple[str, str], None] = {}


@contextmanager
def one_look(what: str) -> Iterator[None]:
    """Raises `AxonError` (AX-001) instead of what nobody thought of. `what` names the kind of look, not whom it was at.

    Cancelling passes, and so does `OSError`, of which callers know what it means where they are.
    """
    try:
        yield
    except (AxonError, OSError):
        raise
    except Exception as error:
        _tell(what, error)
        raise AxonError(f"a mistake of ours in {what}", cause=f"{type(error).__name__}: {str(error)[:200]}") from error


async def alone(what: str, work: Awaitable[None]) -> None:
    """Await `work` of which nobody hears how it went: an error of any kind ends it, is told, and ends nothing else."""
    try:
        with one_look(what):
            await work
    except (AxonError, OSError) as error:
        log.warning("given up", doing=what, reason=error.in_a_line if isinstance(error, AxonError) else str(error))


async def keep_up(
    what: str, run: Callable[[], Awaitable[None]], pause: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Run `run` until it returns or is cancelled; begin it again when it ends by an exception of any kind."""
    wait = FIRST_PAUSE_S
    while True:
        try:
            return await run()
        except Exception as error:
            _tell(what, error)
        await pause(wait)
        wait = min(2 * wait, LONGEST_PAUSE_S)


def in_background(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None], name: str | None = None) -> None:
    """Begin it. The running loop holds no task: `tasks` does until it ends."""
    task = asyncio.create_task(work, name=name)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


async def cancel_and_wait(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancel those that there are, and wait until each has ended, however it ends."""
    there = [task for task in tasks if task is not None]
    for task in there:
        task.cancel()
    await asyncio.gather(*there, return_exceptions=True)


def _tell(what: str, error: Exception) -> None:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    known = (what, f"{type(error).__name__} {place and (place.tb_frame.f_code.co_filename, place.tb_lineno)}")
    if known in _told:
        log.debug("the same mistake again", during=what, error=type(error).__name__)
        return
    _told[known] = None
    if len(_told) > _MOST_TOLD:
        del _told[next(iter(_told))]
    log.error("a mistake of ours; the others continue", during=what, exc_info=error)
