"""Calls that merge results: their arguments are results that are on the disk already."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from axonp2p.disk_errors import fix_of
from axonp2p.errors import SettingsError
from axonp2p.files import replacing
from axonp2p.kinds.map.call_forms import LARGEST_IN_CHUNK, OWN_MERGE, PackedPart, as_part, pack_values
from axonp2p.kinds.map.reduce_tree import ReduceTree
from axonp2p.kinds.map.results.results_store import ResultsStore


class MergeCalls:
    """Of one life of the client. `blobs` is the folder for arguments that are too large for the message of a chunk."""

    def __init__(
        self, tree: ReduceTree, store: ResultsStore, written: Callable[[], Awaitable[None]], blobs: Path
    ) -> None:
        """`written()` waits until all results that count are in `store`."""
        self._tree = tree
        self._store = store
        self._written = written
        self._blobs = blobs

    def weigh(self, item: int) -> int:
        """A call of the job's own function is its number; one that merges brings the results, or the name of a blob."""
        return LARGEST_IN_CHUNK if self._tree.merges(item) else 0

    def makes(self, items: Sequence[int]) -> bool:
        """Whether the calls of a chunk merge: either all or none do."""
        return self._tree.merges(items[0])

    async def parts(self, items: Sequence[int]) -> list[tuple[PackedPart, PackedPart]]:
        """The function and the arguments of each. Raises `SettingsError` of the disk."""
        await self._written()
        return await asyncio.to_thread(lambda: [(OWN_MERGE, self._arguments(item)) for item in items])

    def end(self) -> None:
        """Nothing more is merged, or it will be packed again. Blocks."""
        shutil.rmtree(self._blobs, ignore_errors=True)

    def _arguments(self, item: int) -> PackedPart:
        packed, large = as_part(pack_values(self._store.values(self._tree.children_of(item))), {}, LARGEST_IN_CHUNK)
        for name, data in large.items():
            try:
                self._blobs.mkdir(exist_ok=True)
                with replacing(self._blobs / name) as file:
                    file.write(data)
            except OSError as error:
                problem = f"cannot write to {self._blobs}: {error.strerror}"
                raise SettingsError(problem, fix=fix_of(error, self._blobs)) from error
        return packed
