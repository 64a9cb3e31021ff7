"""Which trackers a client asks, and the open lines to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from axonp2p.errors import SettingsError
from axonp2p.settings import Settings
from axonp2p.table.tracker_client import first_answer, line_to
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.http_caller import HttpCaller

T = TypeVar("T")


class _LocalSwarm(msgspec.Struct):
    """What we need of the file that `axon swarm up` leaves in a home."""

    trackers: list[str]


def which_trackers(given: Iterable[str], settings: Settings, home: Path) -> list[PinnedAddress]:
    """The trackers to ask, in order: those given, else those in the settings, else those of a local swarm in `home`.

    Raises `SettingsError` when there are none or one is no address.
    """
    texts = list(given) or settings.client.trackers or _local_trackers(home / "swarm.json")
    if not texts:
        raise SettingsError(
            "no tracker is known",
            cause=f"none was given, and neither {home / 'config.toml'} nor a local swarm in {home} names one",
            fix="--tracker https://HOST:PORT#FINGERPRINT, or start a swarm on this computer: axon swarm up",
        )
    return [PinnedAddress.parse(text) for text in texts]


def _local_trackers(path: Path) -> list[str]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_LocalSwarm).trackers
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        raise SettingsError(
            f"{path} cannot be read: {error}", fix="axon swarm down, or name a tracker with --tracker"
        ) from error


class Trackers:
    """Open lines to the trackers. Asked in order: the first that answers is enough."""

    def __init__(self, addresses: Iterable[PinnedAddress]) -> None:
        self._callers = [line_to(address) for address in addresses]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for caller in self._callers:
            await caller.close()

    async def first(self, ask: Callable[[HttpCaller], Awaitable[T]]) -> tuple[HttpCaller, T]:
        """The first answer and the tracker that gave it. Raises `TrackerUnreachable` naming each, or its refusal."""

        async def with_caller(caller: HttpCaller) -> tuple[HttpCaller, T]:
            return caller, await ask(caller)

        return await first_answer(self._callers, with_caller)
