"""Cards of other vendors than NVIDIA: their owners are told why they are not lent. Files under /sys and /dev."""

from __future__ import annotations

import platform
from pathlib import Path

_AMD = "0x1002"


def other_cards(root: Path = Path("/"), system: str = platform.system()) -> tuple[str, ...]:
    """Each as a sentence says it. Graphics within a processor of Intel's are not worth a word."""
    if system == "Darwin":
        return ("Apple's GPU (Metal)",)
    if not (root / "dev/kfd").exists() and not _drawn_by_amd(root):
        return ()
    return ("an AMD card (ROCm)",)


def _drawn_by_amd(root: Path) -> bool:
    for vendor in root.glob("sys/class/drm/card*/device/vendor"):
        try:
            if vendor.read_text(encoding="ascii").strip() == _AMD:
                return True
        except (OSError, ValueError):
            continue  # unplugged meanwhile, or no such file
    return False
