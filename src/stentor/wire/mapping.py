"""Which columns make an attribute or a field, where data call them otherwise.

    {"loc": ["lon", "lat"], "price": "Preis", "id": "event_id"}

Two columns are a point, longitude and latitude (or x and y); one is only renamed. A name with dots
is a way into nested objects. Columns that are used so are no attributes under their own names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from stentor.errors import SettingsError
from stentor.model.values.constant import is_missing
from stentor.model.values.string import describe


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """Attributes and fields by name, each with its one column or its two."""

    sources: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, given: object) -> ColumnMapping:
        """The mapping that *given*, a dict, describes.

        >>> ColumnMapping.of({"loc": ["lon", "lat"]}).object({"id": 1, "lon": 2, "lat": 3})
        {'id': 1, 'loc': [2, 3]}
        """
        if isinstance(given, ColumnMapping):
            return given
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise SettingsError(f"a mapping of columns is a dict by name, got {describe(given)}")
        return cls(tuple((_name(name), _columns(name, one)) for name, one in given.items()))

    @classmethod
    def of_texts(cls, texts: list[str]) -> ColumnMapping:
        """The mapping that *texts* like `loc=lon,lat` describe, as commands take it."""
        found: dict[str, Any] = {}
        for text in texts:
            name, equals, columns = text.partition("=")
            if not equals or not name.strip():
                raise SettingsError(f"expected loc=lon,lat or price=Preis, got {describe(text)}")
            parts = [one.strip() for one in columns.split(",")]
            found[name.strip()] = parts[0] if len(parts) == 1 else parts
        return cls.of(found)

    def __bool__(self) -> bool:
        return bool(self.sources)

    @property
    def used(self) -> frozenset[str]:
        """The columns that something is made of."""
        return frozenset(column for _, columns in self.sources for column in columns)

    def object(self, raw: Any) -> Any:
        """The record *raw* with what is made of its columns; what is no object stays as it is."""
        if not self.sources or not isinstance(raw, Mapping):
            return raw
        given = {name: [_at(raw, one) for one in columns] for name, columns in self.sources}
        plain = {name: cell for name, cell in raw.items() if name not in self.used}
        for name, cells in given.items():
            if len(cells) == 1 and cells[0] is not None:
                plain[name] = cells[0]
            elif len(cells) == 2 and not all(map(is_missing, cells)):
                plain[name] = cells
        return plain

    def table(self, table: Any) -> Any:
        """The Arrow *table* with what is made of its columns."""
        import pyarrow as pa

        if not self.sources:
            return table
        made = {name: [_column(table, one) for one in columns] for name, columns in self.sources}
        kept = [name for name in table.column_names if name not in {*self.used, *made}]
        found = {name: table[name] for name in kept}
        for name, columns in made.items():
            there = [one for one in columns if one is not None]
            if len(there) < len(columns):
                continue  # a table may lack what another has
            if len(there) == 1:
                found[name] = there[0]
            else:
                x, y = (one.combine_chunks() for one in there)
                x, y = (
                    pa.array(one) if isinstance(one, pa.ChunkedArray) else one for one in (x, y)
                )
                found[name] = pa.StructArray.from_arrays([x, y], ["x", "y"])
        return pa.table(found)


#: Everything is called what it is called.
NO_MAPPING: Final = ColumnMapping()


def mapped(events: Any, columns: object) -> Any:
    """*events*, a table, a frame or dicts, with what *columns* makes of them.

    >>> list(mapped([{"id": 1, "lon": 2, "lat": 3}], {"loc": ["lon", "lat"]}))
    [{'id': 1, 'loc': [2, 3]}]
    """
    mapping = ColumnMapping.of(columns)
    if not mapping:
        return events
    if isinstance(events, list | tuple) or not (
        hasattr(events, "columns") or hasattr(events, "__arrow_c_stream__")
    ):
        return [mapping.object(one) for one in events]
    from stentor.wire.tables import to_arrow

    return mapping.table(to_arrow(events))


def _at(raw: Any, path: str) -> Any:
    """What is under *path*: a name, or the names of nested objects with dots between them."""
    if path in raw:
        return raw[path]
    for inner in path.split("."):
        if not isinstance(raw, Mapping) or inner not in raw:
            return None
        raw = raw[inner]
    return raw


def _column(table: Any, path: str) -> Any:
    import pyarrow as pa

    if path in table.column_names:
        return table[path]
    first, *inner = path.split(".")
    found = table[first] if first in table.column_names else None
    for name in inner:
        if found is None or not pa.types.is_struct(found.type):
            return None
        names = [one.name for one in found.type]
        found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        found = found.flatten()[names.index(name)] if name in names else None
    return pa.chunked_array([found]) if isinstance(found, pa.Array) else found


def _name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise SettingsError(f"an attribute's name is a text, got {describe(name)}")
    return name


def _columns(name: str, given: object) -> tuple[str, ...]:
    columns = [given] if isinstance(given, str) else given
    if (
        not isinstance(columns, list | tuple)
        or len(columns) not in (1, 2)
        or not all(isinstance(one, str) and one for one in columns)
    ):
        raise SettingsError(
            f"{name!r} is made of one column, or of two that are a point, [longitude, latitude]; "
            f"got {describe(given)}"
        )
    return tuple(columns)
