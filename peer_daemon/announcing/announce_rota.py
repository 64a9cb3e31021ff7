"""Which trackers have the row, how often they hear of it, and how much of that they decide (pure).

The row is kept with two trackers, of which one stands in the settings where any of those answers; which two is chance,
so that a swarm spreads over its trackers. They stay the same until one is away: then another takes its place at once.
A tracker that comes back gets its part again little by little: at each turn one peer in eight changes one of its two.

A tracker may ask for patience, never for haste; one that is only learnt cannot shorten anything and is not pinged. The
word of others on this peer (its address, whether it can be dialled, that a relay has it) changes the row and is
announced at once, but only so often: a tracker that says something else each time would keep the peer busy with
announces to all.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from axonp2p.table.records import LEAST_AGAIN_S, LEAST_PING_S, MOST_AGAIN_S, Announced
from axonp2p.table.tracker_health import TrackerHealth

WANTED = 2
LONGEST_WAIT_S = 3600.0
_CHANGES = 1 / 8
"""How often a turn ends with another tracker in place of this one."""
_TOGETHER = 0.1
"""A tracker whose turn comes within this part of the interval is announced to now, with the same row."""


@dataclass
class _Turn:
    due: float = 0.0
    """When to announce next."""
    again_in: float = 0.0
    """Seconds that the tracker wanted between two announces; 0 before it said so."""
    last: bool = False
    """Whether another one has the next turn."""
    ping_in: float = 0.0
    """Seconds between two looks whether it lives; 0 for none."""
    ping_due: float = 0.0


class Rota:
    """The turns of the trackers that `health` knows. Times are Unix seconds, passed in."""

    def __init__(self, health: TrackerHealth, chance: random.Random) -> None:
        self._health = health
        self._chance = chance
        self._turns: dict[str, _Turn] = {}
        self._told: dict[str, None] = {}

    @property
    def chosen(self) -> list[str]:
        """The trackers that have the row, as far as is known."""
        return [address for address, turn in self._turns.items() if turn.again_in]

    @property
    def told(self) -> list[str]:
        """Every tracker that was ever given a row: to be told when the peer leaves."""
        return [address for address in self._told if address in self._health.addresses]

    def due(self, now: float) -> list[str]:
        """The trackers to announce to now."""
        self._choose(now)
        due = [address for address, turn in self._turns.items() if _is_due(turn, now)]
        if due:
            soon = [one for one, turn in self._turns.items() if _is_due(turn, now + _TOGETHER * turn.again_in)]
            due += [address for address in soon if address not in due]
        return due + self._worth_a_try(now)

    def wait(self, now: float) -> float:
        """Seconds until somebody is due."""
        moments = [now if _is_due(turn, now) else turn.due for turn in self._turns.values()]
        moments += [turn.ping_due for turn in self._turns.values() if turn.ping_in]
        moments += [self._health.next_try(address, now) for address in self._looked_for()]
        return max(0.0, min(moments, default=now + LONGEST_WAIT_S) - now)

    def to_ping(self, now: float) -> list[str]:
        """The trackers that have the row, and are to be looked at whether they live."""
        return [address for address, turn in self._turns.items() if turn.ping_in and _is_over(turn.ping_due, turn, now)]

    def pinged(self, address: str, now: float) -> None:
        """It lives."""
        if turn := self._turns.get(address):
            turn.ping_due = now + turn.ping_in * (0.75 + self._chance.random() / 2)

    def answered(self, address: str, again_in: float, now: float, ping_in: float = 0.0) -> None:
        """The tracker has the row and wants it again in `again_in` seconds, and to be looked at every `ping_in`."""
        self._told[address] = None
        if address not in self._turns and not self._has_room_for(address):
            return
        # Somewhat sooner than it is wanted, each time by another while, so that no crowd forms.
        due = now + again_in * (0.9 + 0.1 * self._chance.random())
        self._turns[address] = _Turn(due, again_in, self._chance.random() < _CHANGES, ping_in)
        self.pinged(address, now)

    def failed(self, address: str) -> None:
        """The tracker did not take the row; when it is asked again is its health's business."""
        self._turns.pop(address, None)

    def changed(self) -> None:
        """The row says something new: those who have it are to hear it at once."""
        for turn in self._turns.values():
            turn.due = 0.0

    def _looked_for(self) -> list[str]:
        """Those that would have a turn if they were well."""
        others = [address for address in self._health.addresses if address not in self._turns]
        if len(self._turns) < WANTED:
            return others
        return [] if self._has_configured() else [one for one in others if not self._health.is_learnt(one)]

    def _has_configured(self) -> bool:
        health = self._health
        configured = [address for address in health.addresses if not health.is_learnt(address)]
        return not configured or any(address in self._turns for address in configured)

    def _choose(self, now: float) -> None:
        for address, turn in list(self._turns.items()):
            gone = address not in self._health.addresses or self._health.is_away(address)
            if gone or (turn.last and _is_due(turn, now) and self._others(now)):
                del self._turns[address]
                if not gone and (others := self._others(now, but=address)):
                    self._turns[self._chance.choice(others)] = _Turn()
        if not self._has_configured() and self._add(now, configured_only=True) and len(self._turns) > WANTED:
            del self._turns[next(iter(self._turns))]
        while len(self._turns) < WANTED and self._add(now):
            pass

    def _add(self, now: float, *, configured_only: bool = False) -> bool:
        well = [one for one in self._others(now) if not self._health.is_away(one)]
        if configured_only:
            well = [one for one in well if not self._health.is_learnt(one)]
        if not well:
            return False
        self._turns[self._chance.choice(well)] = _Turn()
        return True

    def _others(self, now: float, but: str = "") -> list[str]:
        """Those without a turn that may be asked."""
        health = self._health
        others = [one for one in health.addresses if one not in self._turns and one != but]
        return [one for one in others if health.may_be_asked(one, now)]

    def _worth_a_try(self, now: float) -> list[str]:
        """Those that are away and may be back."""
        health = self._health
        return [one for one in self._looked_for() if health.is_away(one) and health.may_be_asked(one, now)]

    def _has_room_for(self, address: str) -> bool:
        if len(self._turns) < WANTED:
            return True
        if self._health.is_learnt(address) or self._has_configured():
            return False
        del self._turns[next(iter(self._turns))]
        return True


def _is_due(turn: _Turn, now: float) -> bool:
    return _is_over(turn.due, turn, now)


def _is_over(moment: float, turn: _Turn, now: float) -> bool:
    # A moment further away than the interval was set before the clock was put back.
    return moment <= now or moment > now + max(turn.again_in, 2 * turn.ping_in) + 1


EVERY_S = 300.0
"""How often a row is announced when no trusted tracker has said how often it wants one."""
CHANGES_AT_ONCE = 8
"""A peer that starts learns its address, whether it can be dialled, and its relays, all within seconds."""
CHANGE_EVERY_S = 30.0


def again_in(told: Announced, *, trusted: bool) -> float:
    """Seconds until a tracker is to have the row again."""
    wanted = min(max(told.again_in, LEAST_AGAIN_S), MOST_AGAIN_S)
    return wanted if trusted else max(wanted, EVERY_S)


def ping_in(told: Announced, *, trusted: bool) -> float:
    """Seconds between two looks whether a tracker lives; 0 for none."""
    return max(told.ping_in, LEAST_PING_S) if trusted and told.ping_in else 0.0


class ChangeLimit:
    """How many changes that others bring about are announced at once. Times are Unix seconds."""

    def __init__(self) -> None:
        self._left = float(CHANGES_AT_ONCE)
        self._at: float | None = None

    def take(self, now: float) -> bool:
        """Whether one may be announced now; it counts."""
        passed = 0.0 if self._at is None else max(0.0, now - self._at)  # the clock may have been put back
        self._at = now
        self._left = min(CHANGES_AT_ONCE, self._left + passed / CHANGE_EVERY_S)
        if self._left < 1:
            return False
        self._left -= 1
        return True

    @property
    def wait(self) -> float:
        """Seconds from the last `take` until one may be announced."""
        return max(0.0, (1 - self._left) * CHANGE_EVERY_S)
