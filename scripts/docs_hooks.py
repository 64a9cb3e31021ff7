"""What mkdocs needs beside docs/: pages of the repository's other folders, and links that lead to them or to code.

On the repository's own page a link may lead to any file. On the site pages are reached, and code is only named.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "packaging", "examples")
"""Pages outside docs/ that the site has too, and folders of such."""
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for name in BESIDE:
        found = ROOT / name
        for page in sorted(found.rglob("*.md")) if found.is_dir() else [found]:
            if page.is_file():
                source = page.relative_to(ROOT).as_posix()
                files.append(File.generated(config, source, abs_src_path=str(page)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where their pages are on the site."""
    source = page.file.src_uri
    here = posixpath.dirname(source if _is_beside(source) else f"docs/{source}")

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        place = posixpath.normpath(posixpath.join(here, target))
        if (ROOT / place).is_dir():
            place = posixpath.join(place, "README.md")
        if place == "README.md":
            place = "docs/index.md"
        uri = place.removeprefix("docs/")
        if files.get_file_from_path(uri) is not None:
            return f"[{text}]({posixpath.relpath(uri, posixpath.dirname(source) or '.')}{anchor})"
        # Code is not on the site. What exists nowhere is left for mkdocs to name.
        return text if (ROOT / place).exists() else found[0]

    return LINK.sub(link, markdown)


def _is_beside(source: str) -> bool:
    return source.partition("/")[0] in BESIDE
