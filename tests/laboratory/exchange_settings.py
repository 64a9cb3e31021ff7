"""Settings of an exchange, where a test says only those that matter to it."""

from __future__ import annotations

from typing import Any

from axonp2p.training.messages import ExchangeSettings, StartRound
from axonp2p.training.options import COMPRESSIONS

COMPRESSION = {bits: name for name, bits in COMPRESSIONS.items()}
"""As a job file says so many bits a value."""


def exchange_settings(**changes: Any) -> ExchangeSettings:
    """Changed as told."""
    usual: dict[str, Any] = {
        "exchange_every": 10, "overlap": False, "part": 1024, "patience": 10.0, "outer_learning_rate": 0.7,
        "outer_momentum": 0.9,
    }  # fmt: skip
    return ExchangeSettings(**usual | changes)


def start_of(**fields: Any) -> StartRound:
    """An order whose settings are said among its other fields."""
    settings = {name: fields.pop(name) for name in ExchangeSettings.__struct_fields__ if name in fields}
    return StartRound(settings=exchange_settings(**settings), **fields)
