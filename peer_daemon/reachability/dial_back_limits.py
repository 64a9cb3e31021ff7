"""How often a peer calls others back at their wish (pure). Times are seconds that never go back."""

from __future__ import annotations

from collections import deque

from axonp2p.errors import TooOften

WITHIN_S = 60.0
MOST = 30
MOST_OF_ONE = 3
"""Within a minute: in all, and for one IP address or IPv6 household."""


class DialBackLimits:
    """One peer's."""

    def __init__(self) -> None:
        self._asked: deque[tuple[float, str]] = deque()

    def count(self, source: str, now: float) -> None:
        """One more wish from there. Raises `TooOften`; what is refused does not count."""
        while self._asked and now - self._asked[0][0] >= WITHIN_S:
            self._asked.popleft()
        of_one = [at for at, other in self._asked if other == source]
        if len(self._asked) >= MOST or len(of_one) >= MOST_OF_ONE:
            oldest = of_one[0] if len(of_one) >= MOST_OF_ONE else self._asked[0][0]
            wait = max(1.0, oldest + WITHIN_S - now)
            raise TooOften("this peer calls back so often and no oftener", fix=f"again in {wait:.0f} s", wait_s=wait)
        self._asked.append((now, source))
