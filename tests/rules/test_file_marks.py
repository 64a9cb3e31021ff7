"""docs/house.md marks each file: it decides, does, computes, or wires. The marks are true, and some are promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

# The protocols and policies. Whoever makes one of them touch the world has to change this list, and say why.
PROMISED_TO_DECIDE = [
    "axonp2p/wire/codec.py",
    "axonp2p/wire/envelope.py",
    "axonp2p/wire/frame.py",
    "axonp2p/transport/address.py",
    "axonp2p/transport/messages.py",
    "axonp2p/transport/flow/window.py",
    "axonp2p/transport/ways.py",
    "axonp2p/transport/relay/admission.py",
    "axonp2p/transport/relay/choice.py",
    "axonp2p/transport/tunnel/messages.py",
    "axonp2p/table/records.py",
    "axonp2p/table/dht/records/compact.py",
    "axonp2p/table/dht/routing/contact.py",
    "axonp2p/table/dht/records/index_keys.py",
    "axonp2p/table/dht/routing/keys.py",
    "axonp2p/table/dht/routing/lookup.py",
    "axonp2p/table/dht/records/record_store.py",
    "axonp2p/table/dht/routing/routing_table.py",
    "axonp2p/table/dht/records/row_sample.py",
    "axonp2p/table/dht/rpc/timing.py",
    "axonp2p/peers/capability.py",
    "axonp2p/peers/selection.py",
    "axonp2p/reservation/token.py",
    "axonp2p/reservation/calendar.py",
    "axonp2p/jobs/messages.py",
    "axonp2p/jobs/sharding.py",
    "axonp2p/jobs/lifecycle.py",
    "axonp2p/hosting/admission.py",
    "axonp2p/hosting/folder_files.py",
    "axonp2p/hosting/host.py",
    "axonp2p/hosting/lives.py",
    "axonp2p/hosting/messages.py",
    "axonp2p/blobs/manifest.py",
    "axonp2p/blobs/piece_picker.py",
    "axonp2p/blobs/pieces.py",
    "axonp2p/blobs/seeding.py",
    "axonp2p/blobs/swarm.py",
    "axonp2p/ledger/receipt.py",
    "axonp2p/ledger/balances.py",
    "axonp2p/sandbox/walls/command_line.py",
    "axonp2p/sandbox/gpu_access.py",
    "axonp2p/sandbox/limits.py",
    "axonp2p/sandbox/watch/verdict.py",
    "axonp2p/kinds/run/messages.py",
    "axonp2p/kinds/run/copies.py",
    "axonp2p/training/messages.py",
    "axonp2p/training/plan.py",
    "axonp2p/training/rounds/machine.py",
    "axonp2p/training/rounds/attempt.py",
    "axonp2p/training/rounds/attempts.py",
    "axonp2p/training/tuning/exchange_tuner.py",
    "axonp2p/training/deadlines.py",
    "axonp2p/training/rounds/divergence.py",
    "axonp2p/training/worker/outbox.py",
    "axonp2p/training/state_transfer/piece_fetch.py",
    "axonp2p/training/state_transfer/pieces.py",
    "axonp2p/training/tuning/cost_model.py",
    "axonp2p/training/exchange/arrivals.py",
    "axonp2p/training/exchange/reorder_buffer.py",
    "axonp2p/training/exchange/terms.py",
    "axonp2p/training/rounds/fault_attribution.py",
    "peer_daemon/idle/decision.py",
    "tracker/table/admission.py",
    "tracker/table/table_index.py",
    "axonp2p/transport/flow/rate_limit.py",
    "tracker/probing/reports.py",
    "tracker/probing/probe_policy.py",
    "axonp2p/findings.py",
    "axonp2p/transport/clock_check.py",
    "client_cli/doctor/checks.py",
    "peer_daemon/doctor/checks.py",
    "axonp2p/service/unit.py",
    "peer_daemon/unit.py",
    "peer_daemon/gpus/gpu_lending.py",
    "peer_daemon/gpus/gpu_use.py",
    "peer_daemon/lending/leases.py",
    "peer_daemon/lending/lent_gpus.py",
    "peer_daemon/links/line_meter.py",
    "peer_daemon/announcing/announce_rota.py",
    "peer_daemon/idle/hours.py",
    "peer_daemon/idle/policy.py",
    "peer_daemon/idle/reasons.py",
]


def marks() -> dict[str, str]:
    """File -> mark, as the page has them."""
    found: dict[str, str] = {}
    room = ""
    for line in (ROOT / "docs" / "house.md").read_text().splitlines():
        if line.startswith("## "):
            room = line[3:]
        elif row := re.match(r"\| `(\w+\.py)` \| (\w+) \|", line):
            found[f"{room}/{row[1]}"] = row[2]
    return found


def test_the_page_of_all_files_is_what_the_code_says() -> None:
    script = ROOT / "scripts" / "write_house_page"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", PROMISED_TO_DECIDE)
def test_protocols_and_policies_decide(path: str) -> None:
    assert marks()[path] == "decides"


def test_torch_stays_above_its_line() -> None:
    computing = {path for path, mark in marks().items() if mark == "computes"}
    assert all(path.startswith(("axonp2p/tensors/", "axonp2p/training/")) for path in computing)


def test_each_program_is_wired_in_one_file_and_one_more_for_its_owner() -> None:
    wired = {path for path, mark in marks().items() if mark == "wires" and not path.startswith("axonp2p/")}
    own = {"peer_daemon/owner_side.py"}  # what serves the machine's owner, made where `app` would grow too long
    assert wired == {"client_cli/context.py", "peer_daemon/app.py", "tracker/app.py"} | own


def test_every_file_says_what_it_is_for() -> None:
    page = (ROOT / "docs" / "house.md").read_text()
    assert not re.findall(r"^\| `\w+\.py` \| \w+ \|  \|$", page, flags=re.MULTILINE)
