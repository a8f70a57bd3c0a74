"""A DataFrame's columns as attributes: nested structs as columns with dots, mapped columns made.

What a struct is, a value or nested, says `model/values/nested`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.model.values.nested import GEOJSON, names_of_a_value
from stentor.wire.events import NESTED, RESERVED
from stentor.wire.mapping import NO_MAPPING, ColumnMapping

#: Structs that are fields of records, not attributes.
_FIELDS = frozenset((*RESERVED, NESTED, "at", "labels"))


def shaped(df: DataFrame, mapping: ColumnMapping = NO_MAPPING) -> DataFrame:
    """*df* with a column for each attribute that is in its nested structs or made of columns."""
    flat = {
        name: column
        for field in df.schema.fields
        for name, column in _leaves(field.name, _column(field.name), field.dataType)
    }
    made: dict[str, Column] = {}
    for name, columns in mapping.sources:
        there = [flat[one] for one in columns if one in flat]
        if len(there) < len(columns):
            continue  # a file may lack what another has
        made[name] = (
            there[0]
            if len(there) == 1
            else F.when(
                there[0].isNotNull() | there[1].isNotNull(),
                F.struct(there[0].alias("x"), there[1].alias("y")),
            )
        )
    if not made and list(flat) == df.columns:
        return df
    kept = {
        name: column
        for name, column in flat.items()
        if name not in mapping.used and name not in made
    }
    return df.select(*(column.alias(name) for name, column in {**kept, **made}.items()))


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def _leaves(name: str, column: Column, of: T.DataType) -> Iterator[tuple[str, Column]]:
    names = {one.name for one in of.fields} if isinstance(of, T.StructType) else set()
    is_value = not names or names == GEOJSON or names_of_a_value(names)
    if is_value or name in _FIELDS or not isinstance(of, T.StructType):
        yield name, column
        return
    for one in of.fields:
        yield from _leaves(f"{name}.{one.name}", column.getField(one.name), one.dataType)
