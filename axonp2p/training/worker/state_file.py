"""A state that the coordinator itself sends, as parts of a file: that of a job that is gone on with. Pure."""

from __future__ import annotations

from axonp2p.errors import MalformedMessage, PeerMisbehaved
from axonp2p.tensors.coding import BYTES_A_VALUE
from axonp2p.tensors.layout import Layout
from axonp2p.training.messages import FilePart
from axonp2p.training.state_transfer.file_parts import Assembly
from axonp2p.training.trainer.outer_optimizer import State, state_from_file, state_values


class StateFile:
    """The file on its way in, which may come before the order to adopt it or after."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._assembly: Assembly | None = None
        self._wanted: bytes | None = None

    def want(self, state: bytes) -> None:
        """This state is to be adopted."""
        self._wanted = state

    def hear(self, part: FilePart, payload: bytes | memoryview) -> None:
        """The next part. Raises `MalformedMessage`: the coordinator sends what does not fit."""
        if part.offset and self._assembly is None:
            raise MalformedMessage("a part of a state that nobody asked for")
        if part.offset == 0 or self._assembly is None:
            self._assembly = Assembly("the coordinator", state_values(self._layout) * BYTES_A_VALUE, part.sha256)
        try:
            self._assembly.add(part, payload)
        except PeerMisbehaved as error:
            raise MalformedMessage(error.message) from error

    def take(self) -> State | None:
        """The state, once it is here and wanted. Raises `MalformedMessage` when it is another one than was said."""
        if self._wanted is None or self._assembly is None or not self._assembly.complete:
            return None
        wanted, assembly = self._wanted, self._assembly
        self._wanted = self._assembly = None
        try:
            state = state_from_file(assembly.file(), self._layout)
        except PeerMisbehaved as error:
            raise MalformedMessage(error.message) from error
        if state.name != wanted:
            raise MalformedMessage("a state whose pieces do not have the hashes that its name was made of")
        return state
