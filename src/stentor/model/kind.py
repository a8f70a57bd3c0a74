"""The type of an attribute (one name has one kind), and the words for kinds of predicates."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal


class Kind(StrEnum):
    """What the values of an attribute are. Booleans and timestamps are numbers inside."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    POINT = "point"
    SET = "set"

    @property
    def numeric(self) -> bool:
        """Whether values are doubles inside: numbers, 0 and 1, microseconds since 1970 UTC."""
        return self not in (Kind.STRING, Kind.POINT, Kind.SET)


#: The kinds of predicates: every layer has a file of each name.
PredicateWord = Literal[
    "comparison", "membership", "pattern", "keywords", "box", "circle", "polygon", "null_test"
]
