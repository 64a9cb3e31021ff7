from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import axonp2p
from axonp2p.sandbox.environment import closed_to_others, find_environment

PACKAGE = Path(axonp2p.__file__).resolve().parent


def test_the_package_is_there_and_the_checkout_around_it_is_not() -> None:
    binds = dict(find_environment().binds)
    assert binds[str(PACKAGE)] == "/axon/axonp2p"
    above = [str(folder) for folder in PACKAGE.parents]
    assert not [outside for outside in binds if outside in above]


def test_nothing_of_a_home_keeps_its_path() -> None:
    for outside, inside in find_environment().binds:
        if outside.startswith(("/home", "/root")):
            assert inside.startswith(("/python/", "/packages/", "/axon/"))


def test_the_interpreter_is_bound_where_it_will_be_called() -> None:
    found = find_environment()
    outside = {inside: outside for outside, inside in found.binds}
    assert Path(outside[found.python]).samefile(sys.executable)


def test_the_folders_of_packages_are_searched_after_our_own() -> None:
    found = find_environment()
    assert found.python_path[0] == "/axon"
    assert set(found.python_path[1:]) <= {inside for _, inside in found.binds}


def test_what_only_its_owner_may_read_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    package, link = tmp_path / "torch", tmp_path / "broken"
    package.mkdir()
    package.chmod(0o755)  # whatever the umask
    link.symlink_to("nowhere")
    environment = replace(find_environment(), binds=((str(tmp_path), "/packages/0"), ("/root", "/root")))
    assert closed_to_others(environment) is None
    package.chmod(0o700)
    assert closed_to_others(environment) == package
    tmp_path.chmod(0o750)
    assert closed_to_others(environment) == tmp_path
