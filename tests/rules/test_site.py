"""The web site of docs/: every link leads somewhere, and a browser that shows it asks nobody else for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
LOADED = re.compile(
    r"<(?:script|img|iframe|source|link(?=[^>]*rel=.?(?:stylesheet|icon|preload)))[^>]*?(?:src|href)=\S+"
)


@pytest.mark.slow
def test_it_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 50
    loaded = {part for page in pages for part in LOADED.findall(page.read_text())}
    assert any("stylesheet" in part for part in loaded)
    assert not [part for part in loaded if "//" in part]
    styles = "".join(file.read_text() for file in tmp_path.rglob("*.css"))
    assert not re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//[^)]*", styles)
