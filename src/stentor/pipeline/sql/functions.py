"""The language's functions in Spark SQL: `register_functions`, and `for_spark` for `here()`.

A subscription's text then runs in `df.filter(text)` as it stands, and is true of the same rows.
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
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # it is there
from pyspark.sql.types import BooleanType

from stentor.errors import ExpressionError
from stentor.language.parser import parse
from stentor.language.printer import to_text
from stentor.model.expression import And, Expression, Not, Or, Weighted, Within
from stentor.model.region import Circle
from stentor.model.schema import Schema
from stentor.model.value import Point, point
from stentor.pipeline.sql.places import PlacePredicates
from stentor.pipeline.sql.texts import has_all, has_any

# What Spark can write into a query's own plan.
_ENVELOPE = """
ST_MakeEnvelope(west DOUBLE, south DOUBLE, east DOUBLE, north DOUBLE)
RETURNS STRUCT<west DOUBLE, south DOUBLE, east DOUBLE, north DOUBLE>
RETURN named_struct('west', west, 'south', south, 'east', east, 'north', north)
"""
_IN_SQL = (
    _ENVELOPE,
    "ST_Point(x DOUBLE, y DOUBLE) RETURNS ARRAY<DOUBLE> RETURN array(x, y)",
    "ST_GeomFromText(text STRING) RETURNS STRING RETURN text",
    "weight(predicate BOOLEAN, weight DOUBLE) RETURNS BOOLEAN RETURN predicate",
)


def register_functions(spark: SparkSession, *, plane: bool = False) -> None:
    """Make every function of the language but `here()` a function of *spark*'s SQL.

    *plane* is for schemas that say so: x and y are then plain numbers, and distances too. They are
    temporary functions, of this session only.

    Cost: predicates on words and places go through Python in batches of Arrow; constructors and
    weights cost nothing.
    """
    for definition in _IN_SQL:
        spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {definition}")
    places = PlacePredicates(plane)
    predicates: dict[str, Callable[..., Any]] = {
        "has_all": has_all,
        "has_any": has_any,
        "ST_Contains": places.contains,
        "ST_CoveredBy": places.within,
        "ST_Covers": places.contains,
        "ST_DWithin": places.dwithin,
        "ST_Within": places.within,
    }
    for name, predicate in predicates.items():
        spark.udf.register(name, arrow_udf(predicate, BooleanType()))


def for_spark(
    expression: str | Expression,
    at: tuple[float, float] | None = None,
    *,
    schema: Schema | None = None,
) -> str:
    """The text of *expression* for a subscriber *at* a place: `here()` becomes that place.

    With a *schema* names and kinds are checked, and strings read as timestamps where expected.

    >>> for_spark("ST_DWithin(loc, here(), 500) AND price < 300", at=(151.2, -33.9))
    'ST_DWithin(loc, ST_Point(151.2, -33.9), 500) AND price < 300'
    """
    tree = parse(expression, schema=schema) if isinstance(expression, str) else expression
    plane = schema is not None and schema.plane
    return to_text(_placed(tree, None if at is None else point(*at, plane=plane, field="at")))


def _placed(tree: Expression, here: Point | None) -> Expression:
    match tree:
        case And(children) | Or(children):
            return replace(tree, children=tuple(_placed(child, here) for child in children))
        case Not(child):
            return Not(_placed(child, here))
        case Weighted(predicate, weight):
            return Weighted(_placed(predicate, here), weight)  # type: ignore[arg-type]
        case Within(attribute, Circle(None, radius)):
            if here is None:
                raise ExpressionError(
                    "the expression asks where its subscriber is: here()",
                    hint="say it: at=(longitude, latitude)",
                )
            return Within(attribute, Circle(here, radius))
        case _:
            return tree
