"""Whether the workers may run, from what was seen and what the owner wishes (pure): quick to stop, slow to go on.

Stopping is at once. Going on needs a time of quiet: 10 s at first, twice as long after each time that jobs had to stop
within ten minutes of going on, up to five minutes, and half of it again for each ten minutes without that. So a machine
that is wanted again and again is left alone, and one that falls quiet never waits longer than five minutes.
Hours, and whether somebody is there, are already slow; they need no quiet.
"""

from __future__ import annotations

from datetime import datetime

from peer_daemon.idle.decision import RESUME_BELOW, Act, Decision, OtherPrograms, Readings, Why
from peer_daemon.idle.idle_settings import IdleSettings
from peer_daemon.idle.reasons import Reason, reasons, set_of

FIRST_QUIET_S = 10.0
LONGEST_QUIET_S = 300.0
FLAP_S = 600.0
_BUSY_SHARE = 0.25
"""Of all cores; with no limit it is still worth saying that other programs are busy."""
_SETTLED = frozenset({Why.HOURS, Why.IN_USE})


class IdlePolicy:
    """One machine's; `decide` is asked with each look, at least every ten seconds."""

    def __init__(self, settings: IdleSettings) -> None:
        self.settings = settings

    @property
    def settings(self) -> IdleSettings:
        """The owner's settings. New ones are judged afresh: no job waits for quiet that is not asked for any more."""
        return self._settings

    @settings.setter
    def settings(self, settings: IdleSettings) -> None:
        self._settings = settings
        self._busy = OtherPrograms()
        self._stopped_by: Reason | None = None
        self._quiet_since: float | None = float("-inf")
        self._went_on_at = float("-inf")
        self._quiet_s = FIRST_QUIET_S
        self._flapped_at = float("-inf")
        self._frozen_since: float | None = None
        self._handed_back: Decision | None = None

    def decide(self, readings: Readings, now: float, local: datetime, *, working: bool) -> Decision:
        """Decide what to do. `now`: monotonic seconds; `local`: the time on the wall; `working`: a worker lives."""
        waiting = self._stopped_by is not None
        busy, passing = self._other_programs(readings, now, waiting)
        found = list(reasons(readings, self.settings, local, busy=busy, working=working, waiting=waiting))
        self._hear_quiet(found, now, passing)
        if found:
            first = next((reason for reason in found if working and reason.hands_back), found[0])
            self._stop(first, now)
            return self._wait(first, now, readings, working)
        if self._stopped_by is not None:
            assert self._quiet_since is not None
            needed, quiet = self._needed_quiet_s(now), now - self._quiet_since
            if quiet < needed:
                last = self._stopped_by
                sentence = (
                    f"quiet for {quiet:.0f} s, and jobs continue after {needed:.0f}; last reason: {last.sentence}"
                )
                return self._wait(Reason(last.why, sentence), now, readings, working)
        return self._run(readings, now, working)

    def _other_programs(self, readings: Readings, now: float, waiting: bool) -> tuple[Reason | None, bool]:
        """The reason that other programs give, if they do; and whether it is a burst that quiet outlasts."""
        limit, share = set_of(readings, self.settings).others_cpu, readings.others_cpu
        self._busy.look(now, share, limit)
        names = f": {', '.join(readings.busiest)}" if readings.busiest else ""
        who = "other programs use" if len(readings.busiest) > 1 else "another program uses"
        average = self._busy.keeps(limit) if waiting else None
        if (waiting and limit < 1 and share > limit) or (not waiting and self._busy.stops(share, limit)):
            sentence = f"{who} {_percent(share)} % CPU (limit {_percent(limit)} %){names}"
            return Reason(Why.BUSY, sentence), average is None
        if average is not None:
            go_on = f"jobs continue below {_percent(RESUME_BELOW * limit)} %"
            sentence = f"{who.removesuffix('s')}d {_percent(average)} % CPU just now ({go_on}){names}"
            return Reason(Why.BUSY, sentence, lingers=True), False
        return None, False

    def _hear_quiet(self, found: list[Reason], now: float, passing: bool) -> None:
        noise = [reason for reason in found if reason.why not in _SETTLED]
        if passing and self._stopped_by is not None:
            noise = [reason for reason in noise if reason.why is not Why.BUSY]
        if noise:
            self._quiet_since = None
        elif self._quiet_since is None:
            self._quiet_since = now

    def _needed_quiet_s(self, now: float) -> float:
        calm_stretches = min(max(0.0, now - self._flapped_at), 10 * FLAP_S) // FLAP_S
        return max(FIRST_QUIET_S, self._quiet_s / 2**calm_stretches)

    def _stop(self, reason: Reason, now: float) -> None:
        if self._stopped_by is None and reason.why not in _SETTLED and now - self._went_on_at < FLAP_S:
            self._quiet_s = min(LONGEST_QUIET_S, 2 * self._needed_quiet_s(now))
            self._flapped_at = now
        # A reason that lingers at the edge of a limit is not what people want to be told as the last one.
        if self._stopped_by is None or self._stopped_by.why is not reason.why or not reason.lingers:
            self._stopped_by = reason

    def _wait(self, reason: Reason, now: float, readings: Readings, working: bool) -> Decision:
        """Freeze; or hand back what is not to be frozen, or was for too long, and keep to that until it is done."""
        cores = set_of(readings, self.settings).cores
        if not working:
            self._frozen_since = self._handed_back = None
            return Decision(Act.WAIT, reason.why, reason.sentence, cores)
        if self._frozen_since is None:
            self._frozen_since = now
        if self._handed_back is None:
            if reason.hands_back:
                self._handed_back = Decision(Act.HAND_BACK, reason.why, reason.sentence, cores)
            elif now - self._frozen_since >= self.settings.hand_back_s:
                after = f"handed back after {self.settings.hand_back_s / 60:g} minutes of waiting"
                self._handed_back = Decision(Act.HAND_BACK, reason.why, f"{reason.sentence}; {after}", cores)
        return self._handed_back or Decision(Act.WAIT, reason.why, reason.sentence, cores)

    def _run(self, readings: Readings, now: float, working: bool) -> Decision:
        if working and self._handed_back is not None:
            return self._handed_back
        if self._stopped_by is not None:
            self._stopped_by, self._went_on_at = None, now
        self._frozen_since = self._handed_back = None
        limit = set_of(readings, self.settings).others_cpu
        sentence = "nothing else needs the machine"
        if readings.others_cpu > limit or (limit >= 1 and readings.others_cpu > _BUSY_SHARE):
            sentence = f"other programs use {_percent(readings.others_cpu)} % CPU, and your limit allows it"
            if limit < 1:
                sentence = f"other programs use {_percent(readings.others_cpu)} % CPU for a moment"
        return Decision(Act.RUN, Why.FREE, sentence, set_of(readings, self.settings).cores)


def _percent(share: float) -> int:
    return round(100 * share)
