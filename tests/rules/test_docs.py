"""What is not written down does not pass: commands, options, settings, errors, messages, addresses and metrics."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import msgspec
import pytest

from axonp2p import events, settings
from axonp2p.client.events.events import any_event
from axonp2p.errors import error_classes
from axonp2p.table.dht.records.compact import CompactRow
from axonp2p.wire.codec import PROTOCOL_VERSION
from tests.laboratory.faults import Fault

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PROGRAMS = {"axon": "client_cli.main", "axon-peer": "peer_daemon.main", "axon-tracker": "tracker.main"}


def commands(program: str) -> Iterator[tuple[str, click.Command]]:
    """Every command of a program with its full name."""
    module = importlib.import_module(PROGRAMS[program])
    root = next(value for value in vars(module).values() if isinstance(value, click.Group))
    waiting = [(program, root)]
    while waiting:
        name, command = waiting.pop()
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield name, command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for verb in command.list_commands(context):
                below = command.get_command(context, verb)
                assert below is not None
                waiting.append((f"{name} {verb}", below))


@pytest.mark.parametrize("script", ["write_messages_page", "write_commands_page", "write_events_page"])
def test_written_pages_are_what_the_code_says(script: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / script, "--check"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_and_option_says_what_it_is_for(program: str) -> None:
    for name, command in commands(program):
        assert command.help, name
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.hidden or parameter.help, (name, parameter.name)


def test_every_setting_is_documented() -> None:
    page = (DOCS / "settings.md").read_text()
    for section in (settings.ClientSettings, settings.PeerSettings, settings.UseSettings, settings.TrackerSettings):
        for field in msgspec.structs.fields(section):
            assert f"| `{field.encode_name}` |" in page, f"{section.__doc__} {field.encode_name}"


def test_every_error_is_documented() -> None:
    page = (DOCS / "errors.md").read_text()
    for code, kind in error_classes().items():
        assert re.search(rf"^\| {code} \| `{kind.__name__}` \| {kind.exit_code} \|", page, re.M), code
    documented = set(re.findall(r"^\| (AX-\d{3}) \|", page, re.M))
    assert documented == set(error_classes())


def test_error_codes_are_used_once() -> None:
    classes = [kind for kind in _family() if "code" in vars(kind)]
    assert len({kind.code for kind in classes}) == len(classes)


def _family() -> list[type]:
    from axonp2p.errors import AxonError

    found, waiting = [], [AxonError]
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting.extend(kind.__subclasses__())
    return found


def test_every_event_has_a_public_name_and_no_other_name_is_public() -> None:
    page = (DOCS / "events.md").read_text()
    told = {kind.__name__ for kind in get_args(any_event())}
    public = {name for name, kind in vars(events).items() if isinstance(kind, type)}
    assert public == told | {"Event", "PeerRound"}
    for name in public - {"Event"}:
        assert f"\n### {name}" in page, name


def test_every_fault_is_in_the_table_of_faults() -> None:
    page = (DOCS / "training.md").read_text()
    missing = [fault.value for fault in Fault if f"| {fault.value} |" not in page]
    assert not missing


def test_every_address_that_is_served_is_documented() -> None:
    page = (DOCS / "protocol" / "README.md").read_text()
    served: set[str] = set()
    for package in ("axonp2p", "tracker", "peer_daemon"):
        for file in (ROOT / package).rglob("*.py"):
            served.update(re.findall(r'"(/v1/[a-z]+|/metrics)"', file.read_text()))
    assert served
    for address in served:
        assert f"`{address}`" in page or f" {address}`" in page, address


def test_every_field_of_a_compact_row_is_documented() -> None:
    page = (DOCS / "dht.md").read_text()
    for field in CompactRow.__struct_fields__:
        assert f"| `{field}` |" in page, field


def test_every_metric_is_documented() -> None:
    page = (DOCS / "tracker.md").read_text()
    for name in re.findall(r'"(axon_[a-z_]+)"', (ROOT / "tracker" / "api" / "metrics.py").read_text()):
        assert f"`{name}`" in page, name


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target and not target.startswith("mailto:"):
                assert (page.parent / target).exists(), f"{page}: {target}"


def test_the_readme_names_only_commands_that_exist() -> None:
    real = {name for program in PROGRAMS for name, _ in commands(program)}
    text = (ROOT / "README.md").read_text()
    for program in PROGRAMS:
        for words in re.findall(rf"^ +(?:\$ )?{program}((?: [a-z]+)+)", text, re.M):
            verbs = words.split()
            assert any(f"{program} {' '.join(verbs[:n])}" in real for n in (1, 2)), f"{program}{words}"


def test_the_protocol_page_names_the_version_that_is_spoken() -> None:
    assert f"\n\nVersion {PROTOCOL_VERSION}. " in (ROOT / "docs" / "protocol" / "README.md").read_text()
