"""Which trackers a client asks first, and in whose networks it so stands."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from axonp2p.errors import SettingsError
from axonp2p.settings import ClientSettings, Settings
from axonp2p.transport.address import PinnedAddress, split_host_port
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.wire.json_form import decode_json


class _LocalSwarm(msgspec.Struct):
    """The part that we need of the file that `axon swarm up` leaves in a home."""

    trackers: list[str]


def which_trackers(given: Iterable[str], settings: Settings, home: Path) -> list[PinnedAddress]:
    """Those given, else those in the settings, else those of a local swarm in `home`, else none.

    Raises `SettingsError` when one is no address.
    """
    texts = list(given) or settings.client.trackers or _local_trackers(home / "swarm.json")
    return [PinnedAddress.parse(text) for text in texts]


def known_by(trackers: Sequence[PinnedAddress], settings: ClientSettings, *, hosted: bool = False) -> set[str]:
    """IP addresses of those that this client's owner named: it stands in their networks. Resolves names, and blocks.

    `hosted`: a tracker, the first of `trackers`, carries a stranger's job on here; the others are the stranger's words.
    """
    if hosted:
        return set(_addresses_of(trackers[0].host)) if trackers else set()
    hosts = [*(tracker.host for tracker in trackers), *(split_host_port(one)[0] for one in settings.dht_contacts)]
    return {found for host in hosts for found in _addresses_of(host)}


def dial_policy(trackers: Sequence[PinnedAddress], settings: ClientSettings) -> DialPolicy:
    """Which addresses of rows a client with these trackers may dial. Resolves names, and blocks."""
    known = known_by(trackers, settings)
    return DialPolicy(lambda: known)


def _addresses_of(host: str) -> list[str]:
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    except OSError:
        return []


def nobody_known(home: Path) -> SettingsError:
    """The error for a client that knows neither a tracker nor a DHT node."""
    return SettingsError(
        "no tracker is known",
        cause=f"none was given, neither {home / 'config.toml'} nor a local swarm in {home} names one, and neither an"
        " earlier run nor the local network knows a peer",
        fix="--tracker https://HOST:PORT#FINGERPRINT (in Python: Swarm(trackers=[...])), or start a swarm on this"
        " computer: axon swarm up",
    )


def _local_trackers(path: Path) -> list[str]:
    try:
        return decode_json(path.read_bytes(), _LocalSwarm).trackers
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        raise SettingsError(
            f"{path} cannot be read: {error}", fix="axon swarm down, or name a tracker with --tracker"
        ) from error
