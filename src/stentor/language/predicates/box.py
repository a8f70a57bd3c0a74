"""ST_MakeEnvelope: points between two longitudes and two latitudes."""

from __future__ import annotations

from stentor.errors import ExpressionError
from stentor.language.cursor import Cursor
from stentor.language.literals import write_number
from stentor.language.predicates.calls import checked_point, is_plane, numbers
from stentor.model.region import Box


def read(cursor: Cursor, at: int) -> Box:
    """`ST_MakeEnvelope(west, south, east, north)`, from behind its parenthesis on."""
    sides = numbers(cursor, "st_makeenvelope", ("west", "south", "east", "north"))
    west, south, east, north = sides
    try:
        return checked_box(west, south, east, north, is_plane(cursor))
    except ExpressionError as error:
        raise cursor.with_position(error, at, cursor.at) from None


def checked_box(west: float, south: float, east: float, north: float, plane: bool) -> Box:
    """The box; on the globe one whose west exceeds its east crosses 180°."""
    checked_point(west, south, plane)
    checked_point(east, north, plane)
    if south > north:
        raise ExpressionError(
            f"the box's south {south} is above its north {north}",
            hint="the order is ST_MakeEnvelope(west, south, east, north)",
        )
    if plane and west > east:
        raise ExpressionError(
            f"the box's west {west} is right of its east {east}",
            hint="only on the globe can a box go around; this schema is a plane",
        )
    return Box(west, south, east, north)


def to_text(region: Box, name: str) -> str:
    """The text, of the attribute written as *name*."""
    sides = ", ".join(map(write_number, (region.west, region.south, region.east, region.north)))
    return f"ST_Within({name}, ST_MakeEnvelope({sides}))"


def intersection(boxes: list[Box]) -> Box | None:
    """What lies in all of *boxes*, none of which crosses 180°; None where nothing does."""
    box = Box(
        max(box.west for box in boxes),
        max(box.south for box in boxes),
        min(box.east for box in boxes),
        min(box.north for box in boxes),
    )
    return None if box.west > box.east or box.south > box.north else box
