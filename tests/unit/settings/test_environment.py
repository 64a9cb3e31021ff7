"""What the environment says, over what config.toml says."""

from __future__ import annotations

from pathlib import Path

import pytest

from axonp2p.errors import SettingsError
from axonp2p.settings import PeerSettings, read_settings


def peer(home: Path, toml: str = "", **environment: str) -> PeerSettings:
    (home / "config.toml").write_text(toml)
    return read_settings(home, environment).peer


def test_a_section_within_a_section_is_named_in_full(tmp_path: Path) -> None:
    toml = "[peer]\ncores = 4\n[peer.in-use]\ncores = 2\nmemory-mb = 100\n"
    settings = peer(tmp_path, toml, AXON_PEER_IN_USE_CORES="1", AXON_PEER_NOT_IN_USE_RUN="false")
    assert (settings.cores, settings.in_use.cores, settings.in_use.memory_mb) == (4, 1, 100)
    assert not settings.not_in_use.run
    assert settings.in_use.run


def test_a_name_that_begins_like_a_section_is_its_own(tmp_path: Path) -> None:
    assert peer(tmp_path, AXON_PEER_CORES="3").in_use.cores == 0


def test_lists_whose_entries_hold_spaces_are_parted_by_semicolons(tmp_path: Path) -> None:
    settings = peer(
        tmp_path,
        AXON_PEER_HOURS="Mon-Fri 18:00-08:00; Sat,Sun",
        AXON_PEER_YIELD_TO="blender;My Game",
        AXON_PEER_TRACKERS="https://a:1 https://b:2",
    )
    assert settings.hours == ["Mon-Fri 18:00-08:00", "Sat,Sun"]
    assert settings.yield_to == ["blender", "My Game"]
    assert settings.trackers == ["https://a:1", "https://b:2"]


def test_datasets_are_names_with_folders(tmp_path: Path) -> None:
    assert peer(tmp_path, AXON_PEER_DATASETS="faces=/srv/f; text=/srv/t=x").datasets == {
        "faces": "/srv/f",
        "text": "/srv/t=x",
    }
    with pytest.raises(SettingsError) as caught:
        peer(tmp_path, AXON_PEER_DATASETS="faces")
    assert "NAME=FOLDER" in caught.value.fix


def test_what_is_wrong_is_named_with_its_variable(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        peer(tmp_path, AXON_PEER_IN_USE_CORES="many")
    assert caught.value.message == 'AXON_PEER_IN_USE_CORES is "many": expected int, got str'
    with pytest.raises(SettingsError) as caught:
        peer(tmp_path, AXON_PEER_CORES="two")
    assert "config.toml" not in caught.value.message
    assert caught.value.fix == "AXON_PEER_CORES=0"


def test_a_variable_that_no_setting_has_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"AXON_PEER_COERS: no setting.*AXON_PEER_CORES\?"):
        peer(tmp_path, AXON_PEER_COERS="1")
    peer(tmp_path, AXON_PEERS="1", AXON_INDEX="x")  # others' names, or of other things


def test_variables_that_kubernetes_makes_of_a_service_axon_tracker_are_nobodys_mistake(tmp_path: Path) -> None:
    address = "tcp://10.96.0.7:7070"
    made = {"SERVICE_HOST": "10.96.0.7", "SERVICE_PORT": "7070", "SERVICE_PORT_METRICS": "7074", "PORT": address}
    made |= {"PORT_7070_TCP": address, "PORT_7070_TCP_PROTO": "tcp", "PORT_7070_TCP_ADDR": "10.96.0.7"}
    peer(tmp_path, **{f"AXON_TRACKER_{name}": value for name, value in made.items()}, AXON_PEER_1_SERVICE_HOST="::1")
    with pytest.raises(SettingsError, match="AXON_TRACKER_PORT"):
        peer(tmp_path, AXON_TRACKER_PORT="7070")  # somebody meant `listen`


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[peer]\n# mine\ncoers = 1\n", "line 3: coers: unknown key. Did you mean cores?"),
        ("[peer]\ncores = 1\n[pear]\nx = 1\n", "line 3: pear: unknown section. Did you mean [peer]?"),
        ("[peer]\ncores = 'two'\n", "line 2: cores: expected int, got str"),
        ("[peer]\nhours = ['Sat', 3]\n", "line 2: hours: expected str, got int - at $[1]"),
        ("[peer.in-use]\nothers_cpu = 3\n", "line 2: others_cpu: unknown key. Did you mean others-cpu?"),
        ("[peer]\nin-use = 3\n", "line 2: in-use: expected a section, got 3"),
        (
            "[client]\nannounce-every = 3\n",
            "line 2: announce-every: unknown key. Did you mean announce-every, in [tracker]?",
        ),
        ("[peer\n", "line 1: not TOML: "),
    ],
)
def test_a_mistake_in_the_file_is_named_by_its_line_as_in_a_job(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        peer(tmp_path, toml)
    assert f"config.toml, {message}" in caught.value.message
    assert caught.value.fix
