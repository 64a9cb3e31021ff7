"""Which trackers are asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.client.discovery.table_home import TableHome
from axonp2p.client.discovery.trackers import dial_policy, nobody_known, which_trackers
from axonp2p.errors import SettingsError
from axonp2p.settings import ClientSettings, Settings
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.dial_policy import NOT_REACHED
from tests.fakes import ManualClock

NONE = Settings()
SET = Settings(client=ClientSettings(trackers=["https://set:1"]))


def urls(*args: object) -> list[str]:
    return [address.url for address in which_trackers(*args)]  # type: ignore[arg-type]


def test_what_is_given_wins_over_settings_and_these_over_a_local_swarm(tmp_path: Path) -> None:
    (tmp_path / "swarm.json").write_text('{"trackers": ["https://local:1"], "processes": [{"pid": 1}]}')
    assert urls(["https://given:1", "https://given:2"], SET, tmp_path) == ["https://given:1", "https://given:2"]
    assert urls([], SET, tmp_path) == ["https://set:1"]
    assert urls([], NONE, tmp_path) == ["https://local:1"]


def test_without_any_the_way_on_is_said(tmp_path: Path) -> None:
    assert urls([], NONE, tmp_path) == []
    error = nobody_known(tmp_path)
    assert error.message == "no tracker is known"
    assert "--tracker" in error.fix
    assert "axon swarm up" in error.fix


def test_what_is_no_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        which_trackers(["http://plain:1"], NONE, tmp_path)
    (tmp_path / "swarm.json").write_text("[")
    with pytest.raises(SettingsError, match=r"swarm\.json cannot be read"):
        which_trackers([], NONE, tmp_path)


def test_a_client_stands_in_the_networks_of_all_whom_its_owner_named() -> None:
    contacts = ClientSettings(dht_contacts=["127.0.0.1:7"])
    assert dial_policy([], contacts).allows("127.0.0.1")
    tracker = PinnedAddress.parse("https://10.0.0.1:1")
    assert dial_policy([tracker], ClientSettings()).allows("10.0.0.2")
    assert not dial_policy([tracker], ClientSettings()).allows("127.0.0.1")


@pytest.mark.parametrize(("hosted", "heard"), [(False, "connection refused"), (True, NOT_REACHED)])
def test_whose_job_a_tracker_carries_on_does_not_hear_what_answers_near_it(
    tmp_path: Path, hosted: bool, heard: str
) -> None:
    near = PinnedAddress.parse("https://127.0.0.1:9")
    home = TableHome(tmp_path, ClientSettings(dht=False), [near], ManualClock(), hosted=hosted)
    assert home.table.dials.told("connection refused") == heard
