"""torch's compiler (`torch._dynamo`), loaded when a task compiles something and not before.

`torch.optim` imports the compiler with the first optimiser, only to tell it to keep off. That is two fifths of a
worker's start and a quarter of its memory, for a thing that most tasks never use. So until it is used, what would tell
it so finds a stand-in, which agrees. Any other request to the stand-in loads the compiler, which takes its place.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

NAME = "torch._dynamo"


def load_late() -> None:
    """To be called before torch makes its first optimiser. Without effect where the compiler is there already."""
    sys.modules.setdefault(NAME, _StandIn(NAME))


def is_loaded() -> bool:
    """Whether anything has used the compiler."""
    return not isinstance(sys.modules.get(NAME, _StandIn(NAME)), _StandIn)


def load_now() -> None:
    """Load it as its first use would."""
    importlib.import_module(f"{NAME}.utils")


class _StandIn(ModuleType):
    """Stands under the compiler's name while it is not loaded."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._loading = threading.RLock()

    def disable(self, fn: Any = None, recursive: bool = True, **options: Any) -> Any:
        """A function as it is while there is no compiler, and kept from it later: torch keeps what this answers."""
        if not isinstance(fn, FunctionType):
            return self._loaded().disable(fn, recursive, **options)

        @functools.cache
        def kept_from_it() -> Callable[..., Any]:
            disabled: Callable[..., Any] = self._loaded().disable(fn, recursive, **options)
            return disabled

        @functools.wraps(fn)
        def as_it_is(*args: Any, **kwargs: Any) -> Any:
            return (fn if sys.modules[NAME] is self else kept_from_it())(*args, **kwargs)

        return as_it_is

    def graph_break(self, msg: str = "") -> None:
        """Nothing is being compiled."""

    def __getattr__(self, name: str) -> Any:
        # Code that goes through all modules (as `inspect` does) asks for such names; an import of a part, for its path.
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        return getattr(self._loaded(), name)

    def _loaded(self) -> ModuleType:
        with self._loading:
            if sys.modules.get(NAME) is self:
                del sys.modules[NAME]
            return importlib.import_module(NAME)
