"""The language's functions in Spark SQL: `register_functions`, and `for_spark` for `here()`.

A subscription's text then runs in `df.filter(text)` unchanged, and is true of the same rows.
What differs is Spark's:

- An attribute that the frame has no column for is an error, not unknown; names are not
  case-sensitive; the name `current_path` needs backquotes.
- A comparison of different kinds (`price = 'abc'`) is an error where the text cannot be read as a
  number; Stentor refuses it when it is declared, and takes it as unknown otherwise.
- NaN is the largest number; Stentor takes it as missing (`nanvl(price, NULL)` in Spark).
- A TIMESTAMP literal without a zone is in the session's zone, which is UTC in `session()`.
- Decimals are compared as such, where Stentor has doubles; a number of more than 38 digits is
  refused.
- An attribute that is a range has no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa
from pyarrow import types
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # it is there
from pyspark.sql.types import BooleanType

from stentor.errors import ExpressionError, RecordError
from stentor.language.parser import parse
from stentor.language.printer import to_text
from stentor.model import Kind
from stentor.model.expression import And, Expression, Not, Or, Weighted, Within
from stentor.model.kind import PredicateWord
from stentor.model.region import Circle
from stentor.model.schema import Schema
from stentor.model.values import Point
from stentor.model.values.point import read_point
from stentor.pipeline.sql.box import ENVELOPE, in_boxes
from stentor.pipeline.sql.circle import near
from stentor.pipeline.sql.kernels import read_numbers
from stentor.pipeline.sql.keywords import has_all, has_any, has_phrase
from stentor.pipeline.sql.polygon import in_polygons
from stentor.wire.cells.layout import plain_array, validity
from stentor.wire.cells.string import is_string

#: What Spark writes into a query's own plan.
_IN_SQL: Final = {
    "ST_MakeEnvelope": ENVELOPE,
    "ST_Point": "ST_Point(x DOUBLE, y DOUBLE) RETURNS ARRAY<DOUBLE> RETURN array(x, y)",
    "ST_GeomFromText": "ST_GeomFromText(text STRING) RETURNS STRING RETURN text",
    "ST_GeomFromGeoJSON": "ST_GeomFromGeoJSON(text STRING) RETURNS STRING RETURN text",
    "weight": "weight(predicate BOOLEAN, weight DOUBLE) RETURNS BOOLEAN RETURN predicate",
}
#: Functions that a kind of predicate needs where Spark has it itself.
NATIVE: Final[tuple[str, ...]] = ()
_IN_REGION: Final = ("ST_Within", "ST_CoveredBy", "ST_Contains", "ST_Covers", "ST_Intersects")


def functions_for(word: PredicateWord) -> tuple[str, ...]:
    """The functions that Spark must be given for predicates of one kind.

    >>> functions_for("circle"), functions_for("pattern") == NATIVE
    (('ST_Point', 'ST_DWithin'), True)
    """
    match word:
        case "comparison" | "membership" | "pattern" | "null_test":
            return NATIVE
        case "keywords":
            return "has_all", "has_any", "has_phrase"
        case "box":
            return "ST_MakeEnvelope", *_IN_REGION
        case "circle":
            return "ST_Point", "ST_DWithin"
        case "polygon":
            return "ST_GeomFromText", "ST_GeomFromGeoJSON", *_IN_REGION
    assert_never(word)


def predicates_of(plane: bool) -> dict[str, Callable[..., Any]]:
    """The functions that test whole batches, by name."""
    locations = LocationPredicates(plane)
    return {
        "has_all": has_all,
        "has_any": has_any,
        "has_phrase": has_phrase,
        "ST_Contains": locations.contains,
        "ST_CoveredBy": locations.within,
        "ST_Covers": locations.contains,
        "ST_DWithin": locations.dwithin,
        "ST_Intersects": locations.intersects,
        "ST_Within": locations.within,
    }


def register_functions(spark: SparkSession, *, plane: bool = False) -> None:
    """Make every function of the language but `here()` a function of *spark*'s SQL.

    *plane* is for schemas that say so: x and y are then plain numbers, and distances too. They are
    temporary functions, of this session only.

    Cost: predicates on words and points go through Python in batches of Arrow; constructors and
    weights cost nothing.
    """
    for definition in _IN_SQL.values():
        spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {definition}")
    for name, predicate in predicates_of(plane).items():
        spark.udf.register(name, arrow_udf(predicate, BooleanType()))


@dataclass(frozen=True)
class LocationPredicates:
    """The predicates on points, on the globe or on a plane.

    Spark reads their annotations to know that they take and return whole batches.
    """

    plane: bool

    def dwithin(self, locations: pa.Array, centres: pa.Array, metres: pa.Array) -> pa.Array:
        """Which of *locations* are at most *metres* from *centres*; unknown where one is null."""
        return near(locations, centres, metres, self.plane)

    def within(self, locations: pa.Array, regions: pa.Array) -> pa.Array:
        """Which of *locations* are in *regions* or on their borders; unknown where one is null."""
        regions = plain_array(regions)
        location = read_numbers(locations, Kind.POINT, self.plane)
        if types.is_struct(regions.type):
            found = in_boxes(location, regions)
        elif is_string(regions.type):
            found = in_polygons(location, regions, self.plane)
        elif types.is_null(regions.type):
            found = np.zeros(len(regions), np.bool_)
        else:
            raise RecordError(
                f"a region is ST_MakeEnvelope(…) or ST_GeomFromText(…), got {regions.type}"
            )
        return pa.array(found, mask=~(location.valid & validity(regions)))

    def contains(self, regions: pa.Array, locations: pa.Array) -> pa.Array:
        """Which of *regions* hold *locations*, inside or on their borders."""
        return self.within(locations, regions)

    def intersects(self, one: pa.Array, other: pa.Array) -> pa.Array:
        """Which points of one are in the regions of the other, whichever is which."""
        is_region = _is_region(plain_array(one).type) or types.is_null(other.type)
        return self.within(other, one) if is_region else self.within(one, other)


def _is_region(of: Any) -> bool:
    """Whether values of the Arrow type *of* are regions: boxes, or texts of polygons."""
    return is_string(of) or bool(types.is_struct(of) and len(of) == 4)


def for_spark(
    expression: str | Expression,
    at: tuple[float, float] | None = None,
    *,
    schema: Schema | None = None,
) -> str:
    """The text of *expression* for a subscriber *at* a location, which `here()` becomes.

    With a *schema* names and kinds are checked, and strings read as timestamps where expected.

    >>> for_spark("ST_DWithin(loc, here(), 500) AND price < 300", at=(151.2, -33.9))
    'ST_DWithin(loc, ST_Point(151.2, -33.9), 500) AND price < 300'
    """
    tree = parse(expression, schema=schema) if isinstance(expression, str) else expression
    plane = schema is not None and schema.plane
    return to_text(
        _with_location(tree, None if at is None else read_point(at, plane=plane, field="at"))
    )


def _with_location(tree: Expression, here: Point | None) -> Expression:
    match tree:
        case And(children) | Or(children):
            return replace(tree, children=tuple(_with_location(child, here) for child in children))
        case Not(child):
            return Not(_with_location(child, here))
        case Weighted(predicate, weight):
            return Weighted(_with_location(predicate, here), weight)  # type: ignore[arg-type]
        case Within(attribute, Circle(None, radius)):
            if here is None:
                raise ExpressionError(
                    "the expression asks where its subscriber is: here()",
                    hint="say it: at=(longitude, latitude)",
                )
            return Within(attribute, Circle(here, radius))
        case _:
            return tree
