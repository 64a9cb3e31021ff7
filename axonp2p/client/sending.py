"""The bundle's way from this disk to the peers: every file read in a thread, every peer at its own speed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import BinaryIO

from axonp2p.errors import JobFileWrong
from axonp2p.jobs.bundle import Bundle, SourceFile
from axonp2p.jobs.messages import BundlePart


async def read_parts(bundle: Bundle) -> AsyncGenerator[tuple[BundlePart, bytes], None]:
    """Every part with its bytes, in order. Raises `JobFileWrong` when a file changed since it was hashed."""
    opened: SourceFile | None = None
    stream: BinaryIO | None = None
    try:
        for part, file, length in bundle.parts():
            if file is not opened or stream is None:
                if stream:
                    stream.close()
                opened, stream = file, await asyncio.to_thread(file.source.open, "rb")
            data = await asyncio.to_thread(stream.read, length)
            if len(data) != length:
                raise JobFileWrong(f"{file.source} became shorter while it was sent", fix="submit again")
            yield part, data
    except OSError as error:
        raise JobFileWrong(f"{error.filename} cannot be read: {error.strerror}") from error
    finally:
        if stream:
            stream.close()
