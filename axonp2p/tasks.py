"""Models of other libraries as a task, in a line of task.py each.

import axonp2p.tasks

Task = axonp2p.tasks.from_lightning(MyModule, datamodule=MyData)
Task = axonp2p.tasks.from_transformers(lambda: GPT2LMHeadModel(GPT2Config(n_layer=4)), my_data)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from axonp2p.training.library_tasks import from_lightning as from_lightning
    from axonp2p.training.library_tasks import from_transformers as from_transformers


def __getattr__(name: str) -> Any:
    # Torch is loaded when one of them is asked for: whoever lists our modules does not want it.
    if name in ("from_lightning", "from_transformers"):
        from axonp2p.training import library_tasks

        return getattr(library_tasks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
