"""Canonical records in the form in which they cross cheaply from Java to Python.

Spark writes a null array or map in time that grows with the batch (some 9 µs each at 10,000 rows),
a null struct in none worth naming. So places cross as structs of x and y, weights are never null,
and what no frame has does not cross at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from stentor.pipeline.frames.canonical import COLUMNS, Frame
from stentor.pipeline.frames.columns import Origin

PLACE = T.StructType([T.StructField("x", T.DoubleType()), T.StructField("y", T.DoubleType())])


def packed(records: DataFrame, attributes: T.StructType, frames: Sequence[Frame]) -> DataFrame:
    """The canonical *records* of *frames*, packed."""
    names = [name for name in COLUMNS if name not in _absent(frames)]
    places = [one.name for one in attributes.fields if isinstance(one.dataType, T.ArrayType)]
    given = {name: F.col("attributes").getField(name) for name in places}
    if "at" in names:
        given["at"] = F.col("at")
    wrong = [_problem(name, place) for name, place in given.items()]
    problem = F.coalesce(F.col("problem"), *wrong)
    shown = F.to_json(F.struct("op", "id", *(["at"] if "at" in names else []), "attributes"))
    replaced = {
        "attributes": _attributes(attributes, places),
        "problem": problem,
        "raw": F.when(problem.isNotNull(), F.coalesce(F.col("raw"), shown)),
        "weights": F.coalesce(F.col("weights"), F.create_map().cast("map<string,double>")),
        "at": _place(F.col("at")),
    }
    return records.select(*(replaced.get(name, F.col(name)).alias(name) for name in names))


def packed_types(attributes: T.StructType) -> T.StructType:
    """What *attributes* are once they are packed."""
    return T.StructType(
        [
            T.StructField(one.name, PLACE) if isinstance(one.dataType, T.ArrayType) else one
            for one in attributes.fields
        ]
    )


def _absent(frames: Sequence[Frame]) -> set[str]:
    """The columns that no frame has."""
    if any(tuple(frame.df.columns) == COLUMNS for frame in frames):
        return set()
    absent = {
        field
        for field in ("order", "time", "until", "weights")
        if not any(frame.columns.of(field) in frame.df.columns for frame in frames)
    }
    if not any(Origin.OFFSET in frame.df.columns for frame in frames):
        absent.add("offset")
    if all(frame.what == "events" for frame in frames):
        absent |= {"at", "expression"}
    return absent


def _attributes(attributes: T.StructType, places: Sequence[str]) -> Column:
    if not places:
        return F.col("attributes")
    whole = F.col("attributes")
    cells = {one.name: whole.getField(one.name) for one in attributes.fields}
    cells |= {name: _place(cells[name]) for name in places}
    return F.when(whole.isNotNull(), F.struct(*(cell.alias(name) for name, cell in cells.items())))


def _place(given: Column) -> Column:
    x, y = F.get(given, F.lit(0)), F.get(given, F.lit(1))
    return F.when(given.isNotNull(), F.struct(x.alias("x"), y.alias("y")))


def _problem(name: str, given: Column) -> Column:
    """What is wrong with a place that has not two coordinates."""
    size = F.size(given)
    sentence = F.concat(
        F.lit(f"{name}: expected a place, [longitude, latitude], got a list of "),
        size.cast("string"),
    )
    return F.when(given.isNotNull() & (size != 2), sentence)
