"""The type of an attribute: one name has one kind."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What the values of an attribute are. Booleans and timestamps are numbers inside."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    POINT = "point"

    @property
    def numeric(self) -> bool:
        """Whether values are doubles inside: numbers, 0 and 1, microseconds since 1970 UTC."""
        return self not in (Kind.STRING, Kind.POINT)
