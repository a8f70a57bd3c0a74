"""What an object in an attribute is: a value of its own, or more attributes, with dots.

The one rule: an object is a value where it has names of ranges and sets alone (`low`, `high`,
`above`, `below`, `in`, `not`, `not_in`), or exactly those of a point or of `set`; a null counts as
a name, so that a struct says by its type what it is. So is any object where the schema knows the
attribute itself, which must be a value then. Any other is nested: `{"customer": {"age": 5}}` is
the attribute `customer.age`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from stentor.errors import RecordError
from stentor.model.kind import Kind
from stentor.model.values.one_of import NAMES
from stentor.model.values.point import COORDINATE_NAMES
from stentor.model.values.range import RANGE_NAMES

#: Objects inside objects.
MOST_NESTED: Final = 64
#: What an object calls a set where an array would be a point.
SET: Final = frozenset(("set",))
GEOJSON: Final = frozenset(("type", "coordinates"))
_PAIRS: Final = tuple(map(frozenset, COORDINATE_NAMES))
_RANGE_OR_SET: Final = RANGE_NAMES | NAMES

KindOf = Callable[[str], Kind | None]


def names_of_a_value(names: Iterable[Any]) -> bool:
    """Whether an object of exactly these *names* is a value, if it is not GeoJSON.

    >>> names_of_a_value(["low"]), names_of_a_value(["lon", "lat"]), names_of_a_value(["lon"])
    (True, True, False)
    """
    given = frozenset(names)
    return bool(given) and (given <= _RANGE_OR_SET or given in (SET, *_PAIRS))


def is_value(raw: Mapping[str, Any]) -> bool:
    """Whether the object *raw* is a value by itself, whatever the schema knows."""
    return names_of_a_value(raw) or (raw.keys() == GEOJSON and raw["type"] == "Point")


def flattened(given: Mapping[str, Any], kind_of: KindOf) -> Mapping[str, Any]:
    """*given* without nested objects: what is in them has the names of the way to it.

    >>> flattened({"id": 7, "customer": {"age": 5, "home": {"x": 1, "y": 2}}}, lambda name: None)
    {'id': 7, 'customer.age': 5, 'customer.home': {'x': 1, 'y': 2}}
    """
    if not any(isinstance(cell, Mapping) for cell in given.values()):
        return given
    flat: dict[str, Any] = {}
    for name, cell in given.items():
        for path, inner in _leaves(name, cell, kind_of, MOST_NESTED):
            if path in flat:
                raise RecordError(
                    "it stands twice, once as a name with dots and once nested; keep one of them",
                    field=path,
                )
            flat[path] = inner
    return flat


def _leaves(name: Any, cell: Any, kind_of: KindOf, depth: int) -> Iterable[tuple[Any, Any]]:
    if (
        not isinstance(cell, Mapping)
        or not isinstance(name, str)
        or kind_of(name) is not None
        or is_value(cell)
    ):
        yield name, cell
    elif depth == 0:
        raise RecordError(f"objects are nested more than {MOST_NESTED} deep; flatten them")
    else:
        for inner, one in cell.items():
            path = f"{name}.{inner}" if isinstance(inner, str) else inner
            yield from _leaves(path, one, kind_of, depth - 1)
