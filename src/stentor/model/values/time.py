"""What an instant is: in attributes (`read_timestamp`), and in `time` and `until` (`read_time`).

Whole microseconds since 1970 UTC, read from text, `datetime` or seconds.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from stentor.errors import RecordError

#: Later than every instant: the `until` of what never ends.
NEVER = 2**63 - 1
#: Earlier than every instant: logical time before the first record.
BEGINNING = -(2**63)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?"
    r" ?(Z|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?|[A-Za-z][A-Za-z0-9_+/-]{0,63})?",
    re.ASCII,
)


def parse_timestamp(text: str) -> int:
    """Microseconds of *text*, in its own zone or UTC where it names none; else ValueError.

    >>> parse_timestamp("1970-01-01 01:00:00.5+01:00")
    500000
    >>> parse_timestamp("1970-01-02")
    86400000000
    """
    parts = _TIMESTAMP.fullmatch(text.strip())
    if parts is None:
        raise ValueError(
            f"{_short(text)} is not a timestamp; write it as 2026-11-15 12:00:00+01:00"
        )
    year, month, day, hour, minute, second, fraction, zone = parts.groups()
    if fraction and len(fraction) > 6 and fraction[6:].strip("0"):
        raise ValueError(f"{_short(text)} is finer than a microsecond; round it")
    try:
        moment = datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "")[:6].ljust(6, "0")),
            tzinfo=_zone(zone),
        )
        return datetime_micros(moment)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{_short(text)} is not a timestamp: {error}") from None


def datetime_micros(moment: datetime | date) -> int:
    """Microseconds of *moment*; one without a zone is taken as UTC."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def numpy_datetime(raw: Any, field: str | None = None) -> datetime | None:
    """NumPy's instant *raw* as Python's own; None where it is NaT."""
    text = str(raw)
    if text == "NaT":
        return None
    year = text.partition("-")[0]
    if len(year) != 4 or year == "0000":  # or negative
        raise RecordError(f"{text!r} is outside the years 1 to 9999 of UTC", field=field)
    moment = raw.astype("datetime64[us]")
    if moment != raw:
        raise too_fine(text, field)
    found: datetime = moment.item()
    return found


def too_fine(text: str, field: str | None) -> RecordError:
    """What is said of an instant between two microseconds."""
    return RecordError(f"{_short(text)} is finer than a microsecond; round it", field=field)


def format_timestamp(micros: float) -> str:
    """*micros* in the form that the language and JSON use, in UTC.

    >>> format_timestamp(0)
    '1970-01-01T00:00:00+00:00'
    """
    try:
        return (_EPOCH + timedelta(microseconds=int(micros))).isoformat()
    except OverflowError:  # before the beginning of time, or never
        return f"{int(micros) / 1e6:g} s since 1970"


def read_time(raw: Any, field: str) -> int | None:
    """Microseconds of a `time` or `until`: a `datetime`, an ISO text or seconds since 1970.

    >>> read_time(2.5, "until")
    2500000
    >>> read_time(1_700_000_000_000, "until")
    Traceback (most recent call last):
    stentor.errors.RecordError: until: 1700000000000 seconds since 1970 is not in the years 1 to \
9999; divide milliseconds by 1,000
    """
    if getattr(raw, "ndim", None) == 0:  # a NumPy scalar
        is_instant = type(raw).__name__ == "datetime64"
        raw = numpy_datetime(raw, field) if is_instant else raw.item()
    if raw is None or type(raw).__name__ == "NAType":
        return None
    if isinstance(raw, datetime) and raw != raw:  # NaT  # noqa: PLR0124
        return None
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        if not abs(raw) <= LATEST // 1_000_000:  # nor is NaN
            shown = "that many" if isinstance(raw, int) and raw.bit_length() > 256 else raw
            raise RecordError(
                f"{shown} seconds since 1970 is not in the years 1 to 9999; "
                "divide milliseconds by 1,000",
                field=field,
            )
        micros = round(raw * 1_000_000)
    elif isinstance(raw, (datetime, date)):
        if getattr(raw, "nanosecond", 0):  # pandas' own
            raise too_fine(raw.isoformat(), field)
        try:
            micros = datetime_micros(raw)
        except (ValueError, OverflowError) as error:  # a zone of somebody else's making
            raise RecordError(f"not a timestamp: {error}", field=field) from None
    elif isinstance(raw, str):
        try:
            micros = parse_timestamp(raw)
        except ValueError as error:
            raise RecordError(str(error), field=field) from None
    else:
        raise RecordError(
            f"expected a timestamp text or seconds since 1970, got {type(raw).__name__}",
            field=field,
        )
    if not EARLIEST <= micros <= LATEST:
        raise RecordError(f"{raw} is not in the years 1 to 9999", field=field)
    return micros


def read_timestamp(raw: str | datetime | date, field: str | None = None) -> float:
    """Microseconds since 1970 UTC as a double; refused where a double cannot hold them."""
    if not isinstance(raw, str) and getattr(raw, "nanosecond", False):  # pandas' own
        raise too_fine(raw.isoformat(), field)
    try:
        micros = parse_timestamp(raw) if isinstance(raw, str) else datetime_micros(raw)
    except ValueError as error:
        raise RecordError(str(error), field=field) from None
    if not EARLIEST <= micros <= LATEST:
        raise RecordError(f"{str(raw)[:60]!r} is outside the years 1 to 9999 of UTC", field=field)
    if int(float(micros)) != micros:
        raise RecordError(
            f"{raw} is finer than a double can hold so far from 1970; round it to seconds",
            field=field,
        )
    return float(micros)


def time_text(micros: int | None) -> str | None:
    """*micros* as `read_time` reads it back."""
    return None if micros is None else format_timestamp(micros)


def check_micros(micros: object, field: str) -> None:
    """Refuse what is no instant in microseconds, and not None either."""
    if micros is not None and (type(micros) is not int or not BEGINNING <= micros <= NEVER):
        raise RecordError(
            f"expected microseconds since 1970, a whole number, got {type(micros).__name__}",
            field=field,
        )


def _zone(name: str | None) -> tzinfo:
    if name is None or name in ("Z", "UTC", "GMT"):
        return UTC
    if name[0] in "+-":
        digits = name[1:].replace(":", "")
        if len(digits) <= 2:
            digits = digits.zfill(2) + "00"
        digits = digits.ljust(6, "0")
        offset = timedelta(
            hours=int(digits[:2]), minutes=int(digits[2:4]), seconds=int(digits[4:6])
        )
        return timezone(-offset if name[0] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"no time zone {name!r}") from None


def _short(text: str, width: int = 60) -> str:
    return repr(text if len(text) <= width else text[:width] + "…")


#: The first and the last instant that have a text: the years 1 to 9999.
EARLIEST = parse_timestamp("0001-01-01")
LATEST = parse_timestamp("9999-12-31 23:59:59.999999")
#: The `until` of an event that stays live until it is withdrawn: its year has no next one.
FOR_GOOD = LATEST
