"""What an object of a record is: a mapping that has the fields of its kind and no others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from stentor.errors import RecordError
from stentor.model.values.string import MOST_ID_BYTES, describe

Raw = Mapping[str, Any]


def check_object(raw: Any, what: str) -> Raw:
    """*raw* itself; refused where it is not an object (a mapping)."""
    if not isinstance(raw, Mapping):
        raise RecordError(f"{what} is an object {{…}}, got {describe(raw)}")
    return raw


def check_fields(raw: Raw, allowed: Collection[str], what: str) -> None:
    """Refuse a field of *raw* that *what* does not have: a misspelled `until` would be lost."""
    for name, value in raw.items():
        if name not in allowed and value is not None:
            close = get_close_matches(str(name)[:MOST_ID_BYTES], allowed, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(allowed)}"
            raise RecordError(f"{what} has no such field; {hint}", field=str(name)[:MOST_ID_BYTES])


def says(raw: Any, *words: str) -> bool:
    """Whether *raw* is one of *words*; what else it may be need not be comparable to them."""
    return isinstance(raw, str) and raw in words
