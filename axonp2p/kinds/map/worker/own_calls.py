"""The calls of a job's own functions, loaded once in the process that all processes of calls are forked from."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axonp2p.kinds.map.calls.own_function import load_own
from axonp2p.kinds.map.items_file import ItemsFile
from axonp2p.kinds.map.messages import PrepareCalls
from axonp2p.kinds.map.reduce_tree import ReduceTree


@dataclass(frozen=True)
class OwnCalls:
    """`call(item)` makes the call of an item; `merge(one, other)` makes one result of two."""

    call: Callable[[int], Any]
    merge: Callable[[Any, Any], Any]


def load_own_calls(order: PrepareCalls, bundle: Path) -> OwnCalls:
    """The error that loading them raised is raised by each call."""
    os.chdir(bundle)
    if str(bundle) not in sys.path:
        sys.path.insert(0, str(bundle))
    if not order.fn:
        return OwnCalls(_no_function, _no_function)
    try:
        function = load_own(order.fn, bundle)
        items = ItemsFile(bundle / order.items) if order.items else None
        call = (lambda item: function(items.read(item))) if items else function
        if not order.reduce:
            return OwnCalls(call, _no_function)
        merge = load_own(order.reduce, bundle)
        return OwnCalls(_folded(call, merge, ReduceTree(order.count, order.fold)), merge)
    except BaseException as error:
        raised = error

        def failed(*given: Any) -> Any:
            raise raised

        return OwnCalls(failed, failed)


def _folded(call: Callable[[int], Any], merge: Callable[[Any, Any], Any], tree: ReduceTree) -> Callable[[int], Any]:
    def of_item(item: int) -> Any:
        try:
            return call(item)
        except Exception as error:
            error.add_note(f"(item {item})")
            raise

    return lambda number: functools.reduce(merge, map(of_item, tree.items_of(number)))


def _no_function(*given: Any) -> Any:
    raise ValueError("this job has no such function of its own")
