"""What the settings say of lending, checked."""

from __future__ import annotations

from axonp2p.settings import PeerSettings
from peer_daemon.offer import Wishes


def wishes_to_lend(settings: PeerSettings) -> Wishes:
    """How much the owner lends. Raises `SettingsError` for a number that cannot be meant."""
    wishes = Wishes(
        settings.cores,
        settings.memory_mb,
        settings.disk_mb,
        settings.slots,
        tuple(settings.datasets),
        settings.upload_mbit,
        settings.download_mbit,
    )
    wishes.check()
    return wishes
