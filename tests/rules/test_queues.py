"""Every queue has a bound: the rule finds those made without one, and each exception says why it needs none."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
ROOMS = ("axonp2p", "peer_daemon", "tracker", "client_cli")
QUEUES = {"Queue", "SimpleQueue", "LifoQueue", "PriorityQueue"}

REVIEWED = {
    "axonp2p/client/run/fact_inbox.py": "words of a peer are counted; the rest is the leases' and the driver's own",
    "axonp2p/client/storage/event_feed.py": "events of the client's own run, a bounded number for each round",
    "axonp2p/client/leasing/send_queue.py": "`post` counts them (ROOM); `send` waits for its own",
    "axonp2p/kinds/map/calls/live_calls.py": "calls of the client's own program",
    "axonp2p/kinds/map/chunks/waiting_items.py": "items of the client's own job, once for each chunk of theirs",
    "axonp2p/sandbox/log.py": "its bytes are counted (`_tail_limit`), and its pieces are joined at 256",
    "axonp2p/training/coordinator/inbox.py": "words of a member are counted; the rest is the coordinator's",
    "axonp2p/training/worker/outbox.py": "what its own work has to say; pieces that others ask for are counted",
    "axonp2p/training/worker/member_round.py": "places of the worker's own round",
    "axonp2p/training/trainer/training_thread.py": "orders of the coordinator, whose own worker this is",
    "axonp2p/training/worker/worker.py": "orders of the coordinator, whose own worker this is",
    "axonp2p/transport/lanes/lane.py": "parts between loop and thread are counted (AHEAD)",
    "axonp2p/transport/mesh/link.py": "numbers of messages that the session's window holds",
    "axonp2p/transport/mesh/outbox.py": "whoever puts in keeps count (`LinkShaper`): a worker's credit",
    "axonp2p/transport/sessions/session.py": "the receive window bounds it, in bytes and in frames",
    "client_cli/watching/hosted.py": "silences of one host, one for each call without an answer, taken at each look",
    "client_cli/watching/following.py": "events of the client's own run",
    "peer_daemon/idle/programs.py": "looks of this machine at itself",
    "tracker/ledger/backed_credit.py": "one receipt moves at most STEPS_AT_ONCE on, and each names two keys more",
    "tracker/storage/database.py": "`write` counts them (MOST_WAITING)",
}
"""Files with a queue that has no bound of its own, and what bounds it."""


def unbounded(tree: ast.AST) -> list[int]:
    """The lines on which a queue is made without a bound."""
    found = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        made = call.func.value if isinstance(call.func, ast.Subscript) else call.func
        name = made.attr if isinstance(made, ast.Attribute) else made.id if isinstance(made, ast.Name) else ""
        bound = {word.arg for word in call.keywords} & {"maxlen", "maxsize"}
        args = len(call.args)
        without = name == "deque" and args < 2
        without |= name in QUEUES and (name == "SimpleQueue" or not args)
        if without and not bound:
            found.append(call.lineno)
    return found


def test_the_rule_finds_what_it_is_for() -> None:
    source = "a = asyncio.Queue()\nb = deque()\nc = queue.SimpleQueue[int]()\nd = Queue(3)\ne = deque(x, maxlen=4)\n"
    assert unbounded(ast.parse(source)) == [1, 2, 3]


def test_every_queue_has_a_bound_or_a_reason() -> None:
    found = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            text = path.read_text()
            # Most files need not be parsed: no queue is named in them.
            if any(name in text for name in ("Queue", "deque")) and (lines := unbounded(ast.parse(text))):
                found[str(path.relative_to(ROOT))] = lines
    assert not {path: lines for path, lines in found.items() if path not in REVIEWED}, "bound these, or say why not"
    assert set(REVIEWED) <= set(found), "these have no unbounded queue any more"
