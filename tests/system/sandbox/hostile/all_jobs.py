"""Every hostile job, by name."""

from __future__ import annotations

from tests.system.sandbox.hostile import channel, excess, floods
from tests.system.sandbox.hostile.jobs import named

JOBS = named(floods, excess, channel)
