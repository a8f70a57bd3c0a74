"""Queries of Elasticsearch's and OpenSearch's percolator as expressions.

Only what decides whether a document matches is taken over; `boost` becomes a weight where it stands
at one predicate. A field's type matters (a `text` is searched by its words, a `keyword` compared
whole): it comes from the index's mapping, where that is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from math import comb
from typing import Any, Final

from stentor.errors import ExpressionError
from stentor.language.builder import box, polygon, weight
from stentor.language.literals import constant_of, timestamp_constant
from stentor.language.terms import fold_terms
from stentor.model.expression import Comparison, Expression, Has, IsNull, Not, Operator, Predicate
from stentor.model.values import Constant
from stentor.model.values.string import describe
from stentor.wire.foreign.lucene import rlike_of
from stentor.wire.foreign.rule import (
    FALSE,
    TRUE,
    column,
    every,
    is_not_true,
    plain_like,
    refuse,
    some,
    the_list,
    the_object,
    the_pair,
    the_text,
    wildcards_to_like,
)

#: The type of each field: `text`, `keyword`, `date`, `geo_point`, …
FieldTypes = Mapping[str, str]
_Converter = Callable[[dict[str, Any], FieldTypes], Expression]

_TEXTS: Final = frozenset({"text", "match_only_text", "search_as_you_type"})
_DATES: Final = frozenset({"date", "date_nanos"})
#: How many ways *k of n* may be written out.
_MOST_WAYS: Final = 64
_METRES: Final = {
    "mm": 0.001,
    "cm": 0.01,
    "m": 1.0,
    "": 1.0,
    "meters": 1.0,
    "km": 1000.0,
    "kilometers": 1000.0,
    "in": 0.0254,
    "ft": 0.3048,
    "yd": 0.9144,
    "mi": 1609.344,
    "miles": 1609.344,
    "nmi": 1852.0,
    "NM": 1852.0,
}
_DISTANCE: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([A-Za-z]*)\s*", re.ASCII)
_RANGE: Final[Mapping[str, Operator]] = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_OF_BOOL: Final = frozenset({"must", "filter", "should", "must_not", "minimum_should_match"})
#: Keys beside a field that change no match.
_ASIDE: Final = frozenset({"boost", "_name"})


def rules_of(document: Any) -> Iterator[tuple[str | None, Any]]:
    """The queries of *document*: a stored document, what a search answered, or a query itself."""
    whole = the_object(document, "a rule")
    hits = whole.get("hits")
    if isinstance(hits, dict) and isinstance(hits.get("hits"), list):
        for hit in hits["hits"]:
            yield from rules_of(hit)
    elif isinstance(whole.get("_source"), dict):
        yield whole.get("_id"), the_object(whole["_source"], "_source").get("query")
    elif "query" in whole and not whole.keys() & _QUERIES.keys():
        yield whole.get("_id", whole.get("id")), whole["query"]
    else:
        yield None, whole


def types_of(mapping: Any) -> dict[str, str]:
    """The types of fields in an index's *mapping*, as the index tells it or `properties` alone."""
    found = the_object(mapping, "a mapping")
    while "properties" not in found:
        below = [value for value in found.values() if isinstance(value, dict)]
        if len(below) != 1:
            raise ExpressionError("a mapping has `properties`")
        found = below[0]
    types: dict[str, str] = {}
    waiting = [("", the_object(found["properties"], "properties"))]
    while waiting:
        path, properties = waiting.pop()
        for name, raw in properties.items():
            described = the_object(raw, f"the field {name}")
            if isinstance(described.get("properties"), dict):
                waiting.append((f"{path}{name}.", described["properties"]))
            else:
                types[f"{path}{name}"] = str(described.get("type", "object"))
            for inner, field in the_object(described.get("fields", {}), "fields").items():
                types[f"{path}{name}.{inner}"] = str(the_object(field, inner).get("type"))
    return types


def expression_of(query: Any, types: FieldTypes) -> Expression:
    """The expression of *query*."""
    name, body = the_pair(the_object(query, "a query"), "a query")
    if name not in _QUERIES:
        refuse(f"the query {describe(name)}", _ADVICE.get(name, f"those known: {_known()}"))
    return _QUERIES[name](the_object(body, name), types)


def _known() -> str:
    return ", ".join(sorted(_QUERIES))


def _bool(body: dict[str, Any], types: FieldTypes) -> Expression:
    unknown = (
        body.keys() - {"must", "filter", "should", "must_not", "minimum_should_match"} - _ASIDE
    )
    if unknown:
        raise ExpressionError(f"bool has no {', '.join(sorted(unknown))}")
    needed = [*_several(body, "must", types), *_several(body, "filter", types)]
    should = _several(body, "should", types)
    least = _least(body.get("minimum_should_match"), len(should), default=0 if needed else 1)
    if should and least > 0:
        needed.append(_some_of(should, least))
    return every([*needed, *map(is_not_true, _several(body, "must_not", types))])


def _several(body: dict[str, Any], name: str, types: FieldTypes) -> list[Expression]:
    found = body.get(name, [])
    return [expression_of(one, types) for one in (found if isinstance(found, list) else [found])]


def _least(raw: Any, count: int, *, default: int) -> int:
    if raw is None:
        return default
    text = str(raw)
    share = re.fullmatch(r"(-?[0-9]{1,3})%", text)
    if share:
        part = int(count * abs(int(share[1])) / 100)
        return count - part if text.startswith("-") else part
    if not re.fullmatch(r"-?[0-9]{1,6}", text):
        refuse(f"minimum_should_match {describe(raw)}", "give a number or a share in percent")
    least = int(text)
    return count + least if least < 0 else least


def _some_of(parts: list[Expression], least: int) -> Expression:
    """At least *least* of *parts*."""
    if least > len(parts):
        return FALSE
    if comb(len(parts), least) > _MOST_WAYS:
        refuse(f"{least} of {len(parts)}", f"it has more than {_MOST_WAYS} ways; split the rule")
    return some(every(chosen) for chosen in combinations(parts, least))


def _term(body: dict[str, Any], types: FieldTypes) -> Expression:
    name, wanted = _field(body)
    options = wanted if isinstance(wanted, dict) else {"value": wanted}
    if options.get("case_insensitive"):
        refuse("a term in any case", "index a folded copy of the field and ask for that")
    return _weighted(_equal(name, options.get("value"), types), options)


def _terms(body: dict[str, Any], types: FieldTypes) -> Expression:
    name, wanted = _field(body)
    values = the_list(wanted, f"terms of {name}")
    return some(_equal(name, value, types) for value in values)


def _equal(name: str, value: Any, types: FieldTypes) -> Expression:
    if types.get(name) in _TEXTS:
        return column(name).has_all(the_text(value, f"a term of {name}")).expression
    return Comparison(column(name).name, "=", _constant(name, value, types))


def _range(body: dict[str, Any], types: FieldTypes) -> Expression:
    name, wanted = _field(body)
    options = the_object(wanted, f"range of {name}")
    for key in options.keys() - _RANGE.keys() - _ASIDE - {"format", "relation"}:
        refuse(f"{key} in a range", "give bounds with their zone by gt, gte, lt, lte")
    parts = [
        Comparison(column(name).name, operator, _constant(name, options[key], types))
        for key, operator in _RANGE.items()
        if options.get(key) is not None
    ]
    if not parts:
        raise ExpressionError(f"the range of {name} has no bound")
    return _weighted(every(parts), options)


def _constant(name: str, raw: Any, types: FieldTypes) -> Constant:
    """What the field *name* is compared with."""
    if isinstance(raw, str) and (re.match(r"now([-+/]|$)", raw) or "||" in raw):
        refuse(f"the moving date {describe(raw)}", "what stands has no now; give an instant")
    if types.get(name) in _DATES:
        return timestamp_constant(the_text(raw, f"a date of {name}"))
    return constant_of(raw, name)


def _exists(body: dict[str, Any], types: FieldTypes) -> Expression:
    return Not(IsNull(column(body.get("field")).name))


def _match(body: dict[str, Any], types: FieldTypes) -> Expression:
    name, wanted = _field(body)
    options = wanted if isinstance(wanted, dict) else {"query": wanted}
    _no_fuzziness(options)
    if types.get(name, "text") not in _TEXTS or not isinstance(options.get("query"), str):
        return _weighted(_equal(name, options.get("query"), types), options)
    words = fold_terms(options["query"])
    if not words:
        return TRUE if options.get("zero_terms_query") == "all" else FALSE
    least = options.get("minimum_should_match")
    if least is not None:
        parts: list[Expression] = [Has(name, (word,), every=True) for word in words]
        return _some_of(parts, max(1, _least(least, len(parts), default=1)))
    is_every = str(options.get("operator", "or")).lower() == "and"
    return _weighted(Has(name, tuple(words), every=is_every), options)


def _phrase(body: dict[str, Any], types: FieldTypes) -> Expression:
    name, wanted = _field(body)
    options = wanted if isinstance(wanted, dict) else {"query": wanted}
    text = the_text(options.get("query"), "match_phrase")
    if options.get("slop", 0) not in (0, "0"):
        refuse(f"a phrase with slop {options['slop']}", "ask by match with operator `and`")
    if types.get(name, "text") not in _TEXTS:
        return _weighted(_equal(name, text, types), options)
    words = fold_terms(text)
    if not words:
        return TRUE if options.get("zero_terms_query") == "all" else FALSE
    if len(words) == 1:
        return _weighted(Has(name, tuple(words), every=True), options)
    return _weighted(column(name).has_phrase(text).expression, options)


def _multi_match(body: dict[str, Any], types: FieldTypes) -> Expression:
    if body.get("type", "best_fields") not in ("best_fields", "most_fields"):
        refuse(f"multi_match of type {body['type']}", "best_fields and most_fields can")
    _no_fuzziness(body)
    inner = {key: body[key] for key in body.keys() & {"query", "operator", "minimum_should_match"}}
    fields = [the_text(one, "a field") for one in the_list(body.get("fields"), "fields")]
    if any("*" in field for field in fields):
        refuse("multi_match over patterns of names", "name the fields")
    return some(_match({field.partition("^")[0]: inner}, types) for field in fields)


def _no_fuzziness(options: dict[str, Any]) -> None:
    if options.get("fuzziness", 0) not in (0, "0"):
        refuse("fuzziness", "name the spellings that occur by has_any")


def _prefix(body: dict[str, Any], types: FieldTypes) -> Expression:
    name, text, options = _pattern(body, "prefix")
    return _weighted(column(name).like(plain_like(text) + "%").expression, options)


def _wildcard(body: dict[str, Any], types: FieldTypes) -> Expression:
    name, text, options = _pattern(body, "wildcard")
    return _weighted(column(name).like(wildcards_to_like(text, "?")).expression, options)


def _regexp(body: dict[str, Any], types: FieldTypes) -> Expression:
    name, text, options = _pattern(body, "regexp")
    if types.get(name) in _TEXTS:
        refuse(f"a regexp over the words of {name}", "ask for its keyword, or for words by match")
    return _weighted(column(name).rlike(rlike_of(text)).expression, options)


def _pattern(body: dict[str, Any], what: str) -> tuple[str, str, dict[str, Any]]:
    name, wanted = _field(body)
    options = wanted if isinstance(wanted, dict) else {"value": wanted}
    if options.get("case_insensitive"):
        refuse(f"a {what} in any case", "index a folded copy of the field and ask for that")
    return name, the_text(options.get("value", options.get("wildcard")), what), options


def _geo_distance(body: dict[str, Any], types: FieldTypes) -> Expression:
    name, centre = _field(body, "distance", "distance_type", "validation_method", "ignore_unmapped")
    found = _DISTANCE.fullmatch(str(body.get("distance")))
    if not found or found[2] not in _METRES:
        raise ExpressionError(f"distance is a length like 200m or 1.5km: {body.get('distance')!r}")
    metres = float(found[1]) * _METRES[found[2]]
    return column(name).within_distance(_point(centre), metres).expression


def _geo_bounding_box(body: dict[str, Any], types: FieldTypes) -> Expression:
    name, corners = _field(body, "validation_method", "type", "ignore_unmapped")
    sides = the_object(corners, "a bounding box")
    if {"top_left", "bottom_right"} <= sides.keys():
        (west, north), (east, south) = _point(sides["top_left"]), _point(sides["bottom_right"])
    elif {"top_right", "bottom_left"} <= sides.keys():
        (east, north), (west, south) = _point(sides["top_right"]), _point(sides["bottom_left"])
    elif {"top", "left", "bottom", "right"} <= sides.keys():
        west, south, east, north = (sides[key] for key in ("left", "bottom", "right", "top"))
    else:
        raise ExpressionError("a bounding box has top_left and bottom_right")
    return column(name).within(box(west, south, east, north)).expression


def _geo_polygon(body: dict[str, Any], types: FieldTypes) -> Expression:
    name, wanted = _field(body, "validation_method", "ignore_unmapped")
    points = the_list(the_object(wanted, "geo_polygon").get("points"), "points")
    return column(name).within(polygon(_closed([_point(one) for one in points]))).expression


def _geo_shape(body: dict[str, Any], types: FieldTypes) -> Expression:
    name, wanted = _field(body, "ignore_unmapped")
    options = the_object(wanted, "geo_shape")
    relation = str(options.get("relation", "intersects")).lower()
    shape = the_object(options.get("shape"), "the shape")
    kind, coordinates = str(shape.get("type")).lower(), shape.get("coordinates")
    if relation not in ("intersects", "within"):
        refuse(f"geo_shape {relation}", "a point can lie within a shape")
    if kind == "envelope":
        (west, north), (east, south) = map(_point, the_list(coordinates, "coordinates"))
        return column(name).within(box(west, south, east, north)).expression
    if kind == "polygon":
        rings = [[_point(one) for one in ring] for ring in the_list(coordinates, "coordinates")]
        return column(name).within(polygon(*map(_closed, rings))).expression
    if kind == "multipolygon":
        several = the_list(coordinates, "coordinates")
        inner: dict[str, Any] = {"relation": relation}
        shapes = ({"type": "polygon", "coordinates": one} for one in several)
        return some(_geo_shape({name: inner | {"shape": one}}, types) for one in shapes)
    return refuse(f"a shape of type {kind}", "envelope, polygon and multipolygon can")


def _point(raw: Any) -> tuple[float, float]:
    """A location as they write it: an object, `[lon, lat]`, `"lat,lon"` or WKT."""
    if isinstance(raw, dict):
        if "coordinates" in raw:
            return _point(raw["coordinates"])
        return raw["lon"], raw["lat"]
    if isinstance(raw, str):
        wkt = re.fullmatch(r"\s*POINT\s*\(\s*(\S+)\s+(\S+)\s*\)\s*", raw, re.IGNORECASE)
        pair = (wkt[1], wkt[2]) if wkt else tuple(reversed(raw.split(",")))
        if len(pair) == 2:
            try:
                return float(pair[0]), float(pair[1])
            except ValueError:
                pass
        refuse(f"the location {describe(raw)}", "give lat and lon")
    if isinstance(raw, list) and len(raw) == 2:
        return raw[0], raw[1]
    raise ExpressionError(f"a location is lat and lon, got {describe(raw)}")


def _closed(ring: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return ring if ring and ring[0] == ring[-1] else [*ring, *ring[:1]]


def _match_all(body: dict[str, Any], types: FieldTypes) -> Expression:
    return TRUE


def _match_none(body: dict[str, Any], types: FieldTypes) -> Expression:
    return FALSE


def _inner(key: str) -> _Converter:
    """A query that matches what the one at *key* matches, with another score."""

    def convert(body: dict[str, Any], types: FieldTypes) -> Expression:
        return expression_of(body.get(key, {"match_all": {}}), types)

    return convert


def _dis_max(body: dict[str, Any], types: FieldTypes) -> Expression:
    return some(expression_of(one, types) for one in the_list(body.get("queries"), "queries"))


def _field(body: dict[str, Any], *beside: str) -> tuple[str, Any]:
    """The one field of *body*, and what is asked of it."""
    fields = {key: value for key, value in body.items() if key not in _ASIDE.union(beside)}
    return the_pair(fields, "a query of a field")


def _weighted(tree: Expression, options: dict[str, Any]) -> Expression:
    boost = options.get("boost", 1)
    return weight(tree, boost).expression if boost != 1 and isinstance(tree, Predicate) else tree


_QUERIES: Final[Mapping[str, _Converter]] = {
    "match_all": _match_all,
    "match_none": _match_none,
    "bool": _bool,
    "term": _term,
    "terms": _terms,
    "range": _range,
    "exists": _exists,
    "match": _match,
    "match_phrase": _phrase,
    "multi_match": _multi_match,
    "prefix": _prefix,
    "wildcard": _wildcard,
    "regexp": _regexp,
    "geo_distance": _geo_distance,
    "geo_bounding_box": _geo_bounding_box,
    "geo_polygon": _geo_polygon,
    "geo_shape": _geo_shape,
    "constant_score": _inner("filter"),
    "function_score": _inner("query"),
    "boosting": _inner("positive"),
    "dis_max": _dis_max,
}
_ADVICE: Final[Mapping[str, str]] = {
    "ids": "an event's id is no attribute; give the event an attribute of its own",
    "query_string": "write it as bool, match and range",
    "simple_query_string": "write it as bool, match and range",
    "fuzzy": "name the spellings that occur by terms",
    "nested": "flatten the objects before they are published",
    "script": "say it by predicates",
}
