"""The plain way: a web server of files, and a program that fetches one. The baseline of `scripts/bench/blobs`.

python -m tests.lab.bench.plain_http serve FOLDER HOST PORT | fetch URL FILE
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import aiohttp
from aiohttp import web


async def serve(folder: str, host: str, port: str) -> None:
    """For ever; says `ready` when it listens."""
    app = web.Application()
    app.router.add_static("/", folder)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, host, int(port)).start()
    print("ready", flush=True)
    await asyncio.Event().wait()


async def fetch(url: str, file: str) -> None:
    """All of it to disk; prints when it began and ended, by this machine's monotonic clock, and how many bytes came."""
    began, count = time.monotonic(), 0
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
        with Path(file).open("wb") as out:  # noqa: ASYNC230  (it does nothing else)
            async for chunk in answer.content.iter_chunked(2**18):
                out.write(chunk)
                count += len(chunk)
    print(json.dumps({"began": began, "ended": time.monotonic(), "bytes": count}), flush=True)


if __name__ == "__main__":
    asyncio.run({"serve": serve, "fetch": fetch}[sys.argv[1]](*sys.argv[2:]))
