"""How large a record may be: checked before anything is made of it."""

from __future__ import annotations

from dataclasses import dataclass

from stentor.errors import SettingsError
from stentor.language.limits import DEFAULT_LIMITS, Limits


@dataclass(frozen=True, slots=True)
class RecordLimits:
    """Settings that bound what one record can cost; the defaults are safe for strangers.

    >>> RecordLimits(attributes=0)
    Traceback (most recent call last):
    stentor.errors.SettingsError: the limit 'attributes' is 0; expected a whole number of at least 1
    """

    attributes: int = 10_000
    """Of one event; and its weights."""
    string_bytes: int = 1_000_000
    """Of one string of an event, as UTF-8."""
    record_bytes: int = 8_000_000
    """Of one line of JSON; of all strings of one event together."""
    choices: int = 1_000
    """Of one event: the ways to choose one value of each of its sets, the product of how many
    values they have; each is matched like an event."""
    expression: Limits = DEFAULT_LIMITS
    """Of a subscription's expression."""

    def __post_init__(self) -> None:
        for name in ("attributes", "string_bytes", "record_bytes", "choices"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise SettingsError(
                    f"the limit {name!r} is {value!r}; expected a whole number of at least 1"
                )


#: What is read where nothing else is said.
DEFAULT_RECORD_LIMITS = RecordLimits()
