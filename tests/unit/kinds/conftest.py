"""Drivers work with the same peers as the client's other parts."""

from tests.unit.client.conftest import *  # noqa: F403  fixtures
