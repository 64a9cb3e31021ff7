"""A real browser without a window: Debian's Chromium, steered by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NO_CHROMIUM = "no chromium on this computer: sudo apt install chromium"


@asynccontextmanager
async def a_browser() -> AsyncIterator[Browser]:
    """Chromium, closed at the end."""
    async with async_playwright() as playwright:
        # Its own sandbox refuses to run for root; it opens nothing but our page.
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        try:
            yield browser
        finally:
            await browser.close()
