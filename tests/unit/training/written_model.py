"""The model's file as a client writes it: from a state's bytes, and from what workers said of the file."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from axonp2p.tensors.checkpoint_file import Model, header_of
from axonp2p.training.messages import FileLayout, TensorInfo
from axonp2p.training.state_transfer.model_file import write_model
from axonp2p.training.state_transfer.model_layout import pack_layout, read_layout


def written(told: bytes, state: bytes | memoryview, model: Model, frozen: bytes = b"") -> bytes:
    """The file."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "state")
        kept.write_bytes(header_of("job-1", 1, bytes(32), model) + state)
        file = io.BytesIO()
        write_model(file, kept, read_layout(told, model), model, memoryview(frozen))
        return file.getvalue()


def plain_layout(values: int) -> bytes:
    """What is told of a model with one tensor of parameters."""
    one = TensorInfo(name="weight", dtype="F32", shape=[values], coding="values", begin=0)
    return pack_layout(FileLayout(tensors=[one]), Model(values, values))
