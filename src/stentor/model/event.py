"""Something that happened, or that somebody offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from stentor.model.values import Value

#: What a record says beside its attributes: in the flat form of an event no attribute can have
#: such a name, so no subscription wants one.
RECORD_FIELDS: Final = ("id", "until", "time", "weights", "seq", "op", "among")


def field_not_attribute(name: str) -> tuple[str, str]:
    """What is wrong with a question about the attribute *name*, a field of records; and advice."""
    return (
        f"{name!r} is a field of every record, not an attribute that can be asked for",
        f"let events carry it as an attribute of another name, such as 'event_{name}'",
    )


@dataclass(frozen=True, slots=True)
class Event:
    """Attributes by name, weights by attribute; it stays live only where it has an `until`.

    It is for those subscriptions alone that have all labels of `among`.
    """

    id: str
    attributes: Mapping[str, Value]
    weights: Mapping[str, float] = field(default_factory=dict)
    until: int | None = None
    among: Mapping[str, str] = field(default_factory=dict)
