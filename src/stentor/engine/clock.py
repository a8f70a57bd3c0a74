"""What time it is, and how far ahead a record's own time may be.

Time never goes back, so that one record with a wrong clock would end everything that has an end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Literal

from stentor.encoding.columns import Int64
from stentor.errors import RecordError, SettingsError
from stentor.model.values.time import BEGINNING, EARLIEST, LATEST, format_timestamp

#: Of a clock: enough for a source that gives local time without a zone.
AHEAD_OF_CLOCK = timedelta(days=1)
#: Of the records so far, where there is no clock: archives have gaps, and are in any order.
AHEAD_OF_RECORDS = timedelta(days=3_653)

MostAhead = timedelta | Literal["auto"] | None
_MICROSECOND = timedelta(microseconds=1)


class Clock:
    """A function that gives seconds since 1970, or None; and the setting `most_ahead`.

    A record's time may be so far ahead of the clock; where there is none, of the time of the
    records so far, and the first record that has a time may have any.

    >>> Clock(None, "auto").allows(1_000_000, 0)
    True
    >>> Clock(lambda: 0.5, timedelta(seconds=1)).allows(2_000_000, 0)
    False
    """

    def __init__(self, read: Callable[[], float] | None, most_ahead: MostAhead = "auto") -> None:
        if read is not None and not callable(read):
            raise SettingsError("clock is a function that gives seconds since 1970, or None")
        self._read = read
        self._most = _most_ahead(most_ahead, has_clock=read is not None)
        self._last = 0  # the latest reading; clocks begin in 1970

    def now(self) -> int | None:
        """The clock's time in microseconds; None where there is no clock."""
        if self._read is None:
            return None
        seconds = self._read()
        try:
            micros = round(float(seconds) * 1_000_000) if math.isfinite(seconds) else None
        except (TypeError, ValueError, OverflowError):
            micros = None
        if micros is None or not EARLIEST <= micros <= LATEST:
            raise SettingsError(f"the clock gave {seconds!r}; expected seconds since 1970")
        self._last = max(self._last, micros)
        return micros

    def allows(self, said: int, time: int) -> bool:
        """Whether a record may come at the time that it *said*, where it is *time* already.

        The clock is read only where its last reading does not decide.
        """
        if self._most is None or said <= time:
            return True
        if self._read is None:
            return time == BEGINNING or said - time <= self._most
        if said - self._last > self._most:
            self.now()
        return said - self._last <= self._most

    def allows_all(self, said: Int64, time: int) -> bool:
        """Whether records may come at the times that they *said*, in whichever order.

        Where there is neither clock nor time yet, False may only mean that it depends on the order.
        """
        dated = said[said != BEGINNING]
        if not len(dated):
            return True
        start = int(dated.min()) if time == BEGINNING and self._read is None else time
        return self.allows(int(dated.max()), start)

    def refusal(self, id: str, said: int, time: int) -> RecordError:
        """Why the record of *id* cannot come at the time that it *said*."""
        start = time if self._read is None else self._last
        whose = "the time of the records so far" if self._read is None else "the clock"
        return RecordError(
            f"{id!r} comes at {format_timestamp(said)}, further ahead of {whose} "
            f"({format_timestamp(start)}) than `most_ahead` allows "
            f"({timedelta(microseconds=self._most or 0)}); correct the clock of its source, or set "
            "most_ahead=timedelta(…), or None for any time",
            field="time",
        )


def _most_ahead(most: object, *, has_clock: bool) -> int | None:
    """The setting in microseconds; None where any time is allowed."""
    if isinstance(most, str) and most == "auto":
        most = AHEAD_OF_CLOCK if has_clock else AHEAD_OF_RECORDS
    if most is None:
        return None
    if not isinstance(most, timedelta) or most < timedelta(0):
        raise SettingsError(
            f"most_ahead is {most!r}; expected a timedelta of 0 or more, 'auto', or None: any time"
        )
    return most // _MICROSECOND
