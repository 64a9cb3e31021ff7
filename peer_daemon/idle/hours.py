"""The hours in which the owner lends the machine: "Mon-Fri 18:00-08:00", "Sat,Sun", "22:00-06:00"; several are a union.

Hours are what the clock on the wall shows: times come in as local datetimes without a zone. So on the night on which
clocks change, an hour that happens twice counts twice and one that is left out does not count; nothing else changes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta

from axonp2p.errors import SettingsError

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY_MINUTES = 24 * 60
_WEEK_MINUTES = 7 * _DAY_MINUTES
_TIME = r"\d{1,2}(?::\d{2})?\s*(?:am|pm)?"
_ENTRY = re.compile(
    rf"(?P<days>[A-Za-z][A-Za-z,\s-]*?)??\s*(?:(?P<start>{_TIME})\s*-\s*(?P<end>{_TIME})|(?P<part>evenings?|nights?))?",
    re.I,
)
_FULL_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY_WORDS = {
    **dict.fromkeys(("weekday", "weekdays"), "Mon-Fri"),
    **dict.fromkeys(("weekend", "weekends"), "Sat,Sun"),
    **dict.fromkeys(("daily", "every day"), "Mon-Sun"),
}
_PARTS = {"evening": ("18:00", "24:00"), "night": ("22:00", "08:00")}

Stretch = tuple[int, int]
"""From one minute of the week up to another, Monday 00:00 being 0; the end is not part of it."""


@dataclass(frozen=True)
class Hours:
    """Stretches of the week."""

    text: str = ""
    """As the owner wrote it; empty: at any time."""
    stretches: tuple[Stretch, ...] = ((0, _WEEK_MINUTES),)
    """In order, apart from one another."""

    @classmethod
    def parse(cls, entries: list[str]) -> Hours:
        """The union of `entries`; none: at any time. Raises `SettingsError` for one that is not understood."""
        if not entries:
            return cls()
        stretches = [stretch for entry in entries for stretch in _stretches(entry)]
        return cls(", ".join(entry.strip() for entry in entries), _united(stretches))

    def allow(self, local: datetime) -> bool:
        """Whether `local` is within them."""
        return self._stretch_at(_minute(local)) is not None

    def next_change(self, local: datetime) -> datetime | None:
        """The minute after `local` at which `allow` changes; None: never, they are all of the week."""
        if self.stretches == ((0, _WEEK_MINUTES),):
            return None
        minute = _minute(local)
        here = self._stretch_at(minute)
        if here is not None:
            ahead = here[1] - minute
            if here[1] == _WEEK_MINUTES and self.stretches[0][0] == 0:
                ahead += self.stretches[0][1]  # it goes on over midnight of Sunday
        else:
            ahead = min((start - minute) % _WEEK_MINUTES for start, _ in self.stretches)
        return local.replace(second=0, microsecond=0) + timedelta(minutes=ahead)

    def _stretch_at(self, minute: int) -> Stretch | None:
        place = bisect_right(self.stretches, (minute, _WEEK_MINUTES)) - 1
        if place >= 0 and minute < self.stretches[place][1]:
            return self.stretches[place]
        return None


ANY_TIME = Hours()


def when(moment: datetime, local: datetime) -> str:
    """How people say `moment`, within a week after `local`: "at 18:00", "tomorrow at 08:00", "on Sat at 00:00"."""
    clock = f"at {moment:%H:%M}"
    days = (moment.date() - local.date()).days
    if days == 0:
        return clock
    return f"tomorrow {clock}" if days == 1 else f"on {DAYS[moment.weekday()]} {clock}"


def _minute(local: datetime) -> int:
    return local.weekday() * _DAY_MINUTES + local.hour * 60 + local.minute


def _stretches(entry: str) -> list[Stretch]:
    """The meaning of one entry. Hours that go over midnight belong to the day on which they start."""
    found = _ENTRY.fullmatch(entry.strip())
    if found is None or not entry.strip():
        raise _not_understood(entry)
    start, end = 0, _DAY_MINUTES
    first_time, last_time = found["start"], found["end"]
    if found["part"]:
        first_time, last_time = _PARTS[found["part"].lower().rstrip("s")]
    if first_time:
        start, end = _time(first_time, entry), _time(last_time, entry)
        if start in (end, _DAY_MINUTES):
            raise _not_understood(entry)
        if end < start:
            end += _DAY_MINUTES
    stretches: list[Stretch] = []
    for day in _days(found["days"] or "Mon-Sun", entry):
        first, last = day * _DAY_MINUTES + start, day * _DAY_MINUTES + end
        stretches.append((first, min(last, _WEEK_MINUTES)))
        if last > _WEEK_MINUTES:
            stretches.append((0, last - _WEEK_MINUTES))
    return stretches


def _days(text: str, entry: str) -> list[int]:
    """ "Mon-Wed,Sat" as numbers; "Fri-Mon" goes over the weekend."""
    days: list[int] = []
    meant = _DAY_WORDS.get(" ".join(text.lower().split()), text)
    for part in meant.split(","):
        ends = [_day(name, entry) for name in part.split("-")]
        if len(ends) > 2:
            raise _not_understood(entry)
        days += [(ends[0] + step) % 7 for step in range((ends[-1] - ends[0]) % 7 + 1)]
    return days


def _day(text: str, entry: str) -> int:
    """ "Mon", "mo", "Mondays": two letters and more of one name."""
    name = text.strip().lower()
    name = name.removesuffix("s") if name.endswith("days") else name
    found = [place for place, full in enumerate(_FULL_NAMES) if len(name) >= 2 and full.startswith(name)]
    if len(found) != 1:
        raise _not_understood(entry)
    return found[0]


def _time(text: str, entry: str) -> int:
    """ "18:00", "18", "6pm" as minutes of the day."""
    plain = text.strip().lower()
    half = plain[-2:] if plain[-2:] in ("am", "pm") else ""
    clock, _, past = plain.removesuffix(half).strip().partition(":")
    hours, minutes = int(clock), int(past or 0)
    if half:
        if not 1 <= hours <= 12:
            raise _not_understood(entry)
        hours = hours % 12 + (12 if half == "pm" else 0)
    if minutes > 59 or hours * 60 + minutes > _DAY_MINUTES:
        raise _not_understood(entry)
    return hours * 60 + minutes


def _united(stretches: list[Stretch]) -> tuple[Stretch, ...]:
    """The same minutes, in order and without overlap."""
    united: list[Stretch] = []
    for start, end in sorted(stretches):
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return tuple(united)


def _not_understood(entry: str) -> SettingsError:
    return SettingsError(
        f'these hours are not understood: "{entry}"',
        cause="an entry is days, times, or days and times: Mon to Sun, 00:00 to 24:00",
        fix='hours = ["Mon-Fri 18:00-08:00", "Sat,Sun"]',
    )
