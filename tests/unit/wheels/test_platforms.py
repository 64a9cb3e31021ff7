from __future__ import annotations

import pytest

from axonp2p.wheels.platforms import Platform, own_platform, read_platform

DEBIAN = read_platform("cp311-manylinux_2_36_x86_64")


def test_a_row_names_a_platform_in_one_form() -> None:
    assert Platform(11, "many", 2, 36, "x86_64") == DEBIAN
    assert str(DEBIAN) == "cp311-manylinux_2_36_x86_64"
    assert DEBIAN.title == "Python 3.11 on x86_64 with glibc 2.36"
    alpine = read_platform("cp312-musllinux_1_2_aarch64")
    assert alpine is not None
    assert alpine.title == "Python 3.12 on aarch64 with musl 1.2"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cp311",
        "cp311-win_amd64",
        "cp27-manylinux_2_36_x86_64",
        "cp311-manylinux_2_36_",
        "cp311-macosx_14_0_arm64\n",
    ],
)
def test_what_is_no_platform_of_linux_is_none(text: str) -> None:
    assert read_platform(text) is None


def test_wheels_of_an_older_c_library_run_and_no_others() -> None:
    assert DEBIAN is not None
    assert DEBIAN.runs_wheels_of(Platform(11, "many", 2, 28, "x86_64"))
    for other in (
        Platform(11, "many", 2, 37, "x86_64"),
        Platform(12, "many", 2, 28, "x86_64"),
        Platform(11, "musl", 2, 28, "x86_64"),
        Platform(11, "many", 2, 28, "aarch64"),
    ):
        assert not DEBIAN.runs_wheels_of(other)


def test_tags_go_from_the_newest_to_what_runs_everywhere() -> None:
    assert DEBIAN is not None
    tags = [str(tag) for tag in DEBIAN.tags]
    assert tags[0] == "cp311-cp311-manylinux_2_36_x86_64"
    assert "cp311-abi3-manylinux2014_x86_64" in tags
    assert tags.index("cp311-cp311-manylinux_2_28_x86_64") < tags.index("cp311-cp311-manylinux2014_x86_64")
    assert "cp311-cp311-manylinux_2_37_x86_64" not in tags
    assert "py3-none-any" in tags


def test_this_interpreter_has_a_platform_of_its_own() -> None:
    own = own_platform()
    assert own is not None
    assert read_platform(str(own)) == own
