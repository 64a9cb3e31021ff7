"""The settings of lending, checked."""

from __future__ import annotations

import math

import msgspec

from axonp2p.errors import SettingsError
from axonp2p.sandbox.limits import Priority
from axonp2p.settings import PeerSettings
from peer_daemon.lending.offer import LendingLimits

LEAST_MBIT = 0.1
"""A slower line would be taken for a dead one."""


def priority_of(settings: PeerSettings) -> Priority:
    """When jobs have their turn. Raises `SettingsError`."""
    try:
        priority: Priority = msgspec.convert(settings.priority, Priority)
    except msgspec.ValidationError:
        wrong = f'priority = "{settings.priority[:40]}": one of "idle", "low", "normal"'
        raise SettingsError(wrong, fix='priority = "idle"') from None
    return priority


def limits_to_lend(settings: PeerSettings) -> LendingLimits:
    """How much the owner lends. Raises `SettingsError` for a number that cannot be meant."""
    limits = LendingLimits(
        settings.cores,
        settings.memory_mb,
        settings.disk_mb,
        settings.slots,
        tuple(settings.datasets),
        settings.upload_mbit,
        settings.download_mbit,
        tuple(settings.kinds),
        settings.wheels if settings.wheels_mb else "none",
        settings.gpu,
        settings.gpu_memory_mb,
    )
    limits.check()
    priority_of(settings)
    if settings.wheels_mb < 0:
        raise SettingsError(f"wheels-mb = {settings.wheels_mb}: at least 0", fix="wheels-mb = 2048")
    for name, limit in (
        ("upload-limit-mbit", settings.upload_limit_mbit),
        ("download-limit-mbit", settings.download_limit_mbit),
    ):
        if limit and not LEAST_MBIT <= limit < math.inf:
            raise SettingsError(f"{name} = {limit:g}: at least {LEAST_MBIT:g}, or 0 for none", fix=f"{name} = 1")
    return limits
