"""Rules of other systems: what they match, by small oracles of their own, and what is refused."""

import re
from fnmatch import fnmatchcase
from operator import eq, ge, gt, le, lt

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stentor
from stentor.errors import ExpressionError
from stentor.language.terms import fold_terms
from stentor.wire.foreign import converted, rules_of
from stentor.wire.foreign.percolator import types_of
from stentor.wire.records import event_from_dict

TYPES = {"title": "text", "brand": "keyword", "price": "double", "sold": "date"}
BRANDS = ["Apple", "Acer", "a_b", "App", "A_B", "axb", "ok", "o\u212a", "5%", "50"]
documents = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["", "new iPad", "ipad used", "a used phone", "New"]),
        "brand": st.sampled_from(BRANDS),
        "price": st.sampled_from([0, 1, 2.5, 3]),
    },
)


def is_match(text, document):
    schema = stentor.Schema.declare(
        {"title": "string", "brand": "string", "price": "number", "loc": "point"}
    )
    event = event_from_dict({"id": "e"} | document, schema)
    found = stentor.evaluate(stentor.parse(text, schema=schema), event)
    return bool(found.truth)


one_field = st.one_of(
    st.sampled_from(["Apple", "App", "x"]).map(lambda brand: {"term": {"brand": brand}}),
    st.sampled_from([0, 1, 3]).map(lambda price: {"term": {"price": {"value": price}}}),
    st.lists(st.sampled_from(BRANDS), max_size=3).map(lambda some: {"terms": {"brand": some}}),
    st.dictionaries(
        st.sampled_from(["gt", "gte", "lt", "lte"]), st.sampled_from([0, 1, 2.5]), min_size=1
    ).map(lambda bounds: {"range": {"price": bounds}}),
    st.sampled_from(["title", "brand", "price"]).map(lambda name: {"exists": {"field": name}}),
    st.fixed_dictionaries(
        {
            "query": st.sampled_from(["ipad", "used new", "Phone used", "?"]),
            "operator": st.sampled_from(["or", "AND"]),
        }
    ).map(lambda asked: {"match": {"title": asked}}),
    st.sampled_from(["ipad", "used phone", "NEW ipad", "phone used", "?"]).map(
        lambda phrase: {"match_phrase": {"title": {"query": phrase, "slop": 0}}}
    ),
    st.sampled_from(["A", "a_", ""]).map(lambda text: {"prefix": {"brand": text}}),
    st.sampled_from(["A*", "?pp*", "a_b", "*"]).map(lambda text: {"wildcard": {"brand": text}}),
    st.just({"match_all": {}}),
    st.just({"match_none": {}}),
)


def joined(inner):
    several = st.lists(inner, max_size=3)
    parts = {"must": several, "filter": inner, "should": several, "must_not": several}
    least = st.sampled_from([0, 1, 2, "-1", "50%"])
    body = st.fixed_dictionaries({}, optional=parts | {"minimum_should_match": least})
    return body.map(lambda body: {"bool": body})


def is_percolated(query, document):
    """What the percolator answers, as its manual says it."""
    ((name, body),) = query.items()
    match name:
        case "match_all" | "match_none":
            return name == "match_all"
        case "exists":
            return body["field"] in document
        case "bool":
            return is_joined(body, document)
    ((field, asked),) = body.items()
    if field not in document:
        return False
    value = document[field]
    match name:
        case "term":
            return value == (asked["value"] if isinstance(asked, dict) else asked)
        case "terms":
            return value in asked
        case "range":
            signs = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
            return all(signs[key](value, bound) for key, bound in asked.items())
        case "match":
            words = [word for word in asked["query"].lower().split() if word.isalnum()]
            found = [word in fold_terms(value) for word in words]
            return bool(found) and (all if asked["operator"] == "AND" else any)(found)
        case "match_phrase":
            words, terms = fold_terms(asked["query"]), fold_terms(value)
            starts = range(len(terms) - len(words) + 1) if words else ()
            return any(terms[start : start + len(words)] == words for start in starts)
        case "prefix":
            return value.startswith(asked)
        case "wildcard":
            return fnmatchcase(value, asked)


def is_joined(body, document):
    needed = [*body.get("must", []), *([body["filter"]] if "filter" in body else [])]
    should = body.get("should", [])
    least = body.get("minimum_should_match", 0 if needed else 1)
    least = {"-1": len(should) - 1, "50%": len(should) // 2}.get(least, least)
    return (
        all(is_percolated(one, document) for one in needed)
        and (not should or sum(is_percolated(one, document) for one in should) >= least)
        and not any(is_percolated(one, document) for one in body.get("must_not", []))
    )


@given(query=st.recursive(one_field, joined, max_leaves=6), document=documents)
def test_a_percolator_query_matches_what_it_matched(query, document):
    text = converted(query, "percolator", TYPES)
    assert is_match(text, document) == is_percolated(query, document), text


matchers = st.one_of(
    st.sampled_from([*BRANDS, None]),
    st.sampled_from(["A", "a_"]).map(lambda text: {"prefix": text}),
    st.sampled_from(["r", "_b"]).map(lambda text: {"suffix": text}),
    st.sampled_from(["A*e", "*c*", "a\\*b"]).map(lambda text: {"wildcard": text}),
    st.booleans().map(lambda is_there: {"exists": is_there}),
    st.lists(st.sampled_from(BRANDS), min_size=1).map(lambda some: {"anything-but": some}),
    st.sampled_from(["A", "a_"]).map(lambda text: {"anything-but": {"prefix": text}}),
    st.sampled_from(["apple", "A_b", "OK", "5%", "\u212a"]).map(
        lambda text: {"equals-ignore-case": text}
    ),
    st.sampled_from(["a_", "aP", "O"]).map(lambda text: {"prefix": {"equals-ignore-case": text}}),
    st.sampled_from(["_B", "K", "%"]).map(lambda text: {"suffix": {"equals-ignore-case": text}}),
    st.sampled_from([["APP", "ok"], "a_B"]).map(
        lambda text: {"anything-but": {"equals-ignore-case": text}}
    ),
)
numbers = st.one_of(
    st.sampled_from([0, 1, 3]),
    st.tuples(st.sampled_from(["<", "<=", "=", ">", ">="]), st.sampled_from([0, 1, 2.5])).map(
        lambda asked: {"numeric": list(asked)}
    ),
    st.just({"numeric": [">", 0, "<=", 2.5]}),
    st.sampled_from([0, 3]).map(lambda price: {"anything-but": price}),
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "brand": st.lists(matchers, min_size=1, max_size=3),
        "price": st.lists(numbers, min_size=1, max_size=3),
    },
).filter(bool)
patterns = st.one_of(
    fields,
    st.tuples(fields, st.lists(fields, min_size=1, max_size=3)).map(
        lambda both: both[0] | {"$or": both[1]}
    ),
)


def is_routed(pattern, event):
    """What EventBridge answers, as its guide says it."""
    return all(
        any(is_routed(one, event) for one in wanted)
        if name == "$or"
        else any(is_asked(matcher, event.get(name)) for matcher in wanted)
        for name, wanted in pattern.items()
    )


def is_asked(matcher, value):
    if not isinstance(matcher, dict):
        return value == matcher
    ((name, wanted),) = matcher.items()
    if name == "exists":
        return (value is not None) == wanted
    if value is None:
        return False
    match name:
        case "equals-ignore-case":
            several = [wanted] if isinstance(wanted, str) else wanted
            return any(is_same(value, text) for text in several)
        case "prefix" if isinstance(wanted, dict):
            text = wanted["equals-ignore-case"]
            return is_same(value[: len(text)], text)
        case "suffix" if isinstance(wanted, dict):
            text = wanted["equals-ignore-case"]
            return is_same(value[-len(text) :], text)
        case "prefix":
            return value.startswith(wanted)
        case "suffix":
            return value.endswith(wanted)
        case "wildcard":
            return fnmatchcase(value, wanted.replace("\\*", "[*]"))
        case "numeric":
            signs = {"<": lt, "<=": le, "=": eq, ">": gt, ">=": ge}
            pairs = zip(wanted[::2], wanted[1::2], strict=True)
            return all(signs[sign](value, bound) for sign, bound in pairs)
        case "anything-but" if isinstance(wanted, dict):
            return not is_asked(wanted, value)
        case "anything-but":
            return value not in (wanted if isinstance(wanted, list) else [wanted])


def is_same(value, text):
    """Each letter of *text* stands for its small and its capital one."""
    pairs = zip(value, text, strict=False)
    return len(value) == len(text) and all(one in (c.lower(), c.upper()) for one, c in pairs)


#: A regexp as Lucene writes it, and as Python does: they differ in ^, $ and what must be escaped.
atoms = st.sampled_from(
    [*((c, c) for c in "ab-_\n "), ("^", r"\^"), ("$", r"\$"), (r"\.", r"\."), (".", "(?s:.)")]
    + [(c, c) for c in ("[ab]", "[^a]", "[a-c_-]", "[-a]", "[.$]", r"[\]^]")]
)


def written(inner):
    counted = st.sampled_from(["", "*", "+", "?", "{2}", "{1,}", "{0,2}"])
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        st.tuples(inner, counted).map(lambda both: tuple(f"({x}){both[1]}" for x in both[0])),
        several.map(lambda parts: tuple(map("".join, zip(*parts, strict=True)))),
        several.map(
            lambda parts: tuple(f"({'|'.join(some)})" for some in zip(*parts, strict=True))
        ),
    )


@given(
    both=st.recursive(atoms, written, max_leaves=6),
    value=st.text("abc-_.^$]\n ", max_size=5),
)
def test_a_regexp_matches_what_lucene_matched(both, value):
    text = converted({"regexp": {"brand": {"value": both[0]}}}, "percolator", TYPES)
    assert is_match(text, {"brand": value}) == bool(re.fullmatch(both[1], value)), text


@pytest.mark.parametrize(
    "pattern",
    [
        *("a~b", "a&b", "a@", "#", "<1-5>", '"a"', "a*?", "a**", "*a", "(?i)a", r"\d", "a|"),
        *("(|a)", "()", "a)", "(a", "[]", "[a", "[]a]", "a{,2}", "\\", r"[\w]", "a{2"),
    ],
)
def test_a_regexp_that_reads_in_two_ways_is_refused(pattern):
    with pytest.raises(ExpressionError, match="regexp"):
        converted({"regexp": {"brand": pattern}}, "percolator")


@given(pattern=patterns, event=documents)
def test_an_event_pattern_matches_what_it_matched(pattern, event):
    text = converted(pattern, "eventbridge")
    assert is_match(text, event) == is_routed(pattern, event), text


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (
            {"geo_distance": {"distance": "1.5km", "loc": {"lat": -33.9, "lon": 151.2}}},
            "ST_DWithin(loc, ST_Point(151.2, -33.9), 1500)",
        ),
        (
            {"geo_bounding_box": {"loc": {"top_left": "2, 1", "bottom_right": [3, 0]}}},
            "ST_Within(loc, ST_MakeEnvelope(1, 0, 3, 2))",
        ),
        (
            {"geo_polygon": {"loc": {"points": [[0, 0], [4, 0], "POINT (4 4)"]}}},
            "ST_Contains(ST_GeomFromText('POLYGON((0 0,4 0,4 4,0 0))'), loc)",
        ),
        ({"range": {"sold": {"gte": "2026-01-01T00:00:00Z"}}}, "sold >= TIMESTAMP '2026-01-01'"),
        ({"term": {"brand": {"value": "Apple", "boost": 2}}}, "weight(brand = 'Apple', 2)"),
        (
            {"multi_match": {"query": "new", "fields": ["title^3", "text"]}},
            "has_any(title, 'new') OR has_any(text, 'new')",
        ),
        ({"constant_score": {"filter": {"exists": {"field": "a.b"}}}}, "`a.b` IS NOT NULL"),
    ],
)
def test_a_query_is_written_so(query, text):
    found = converted(query, "percolator", TYPES)
    assert stentor.parse(found) == stentor.parse(text), found


@pytest.mark.parametrize(
    ("system", "rule", "reason"),
    [
        ("percolator", {"fuzzy": {"brand": "a"}}, "the query 'fuzzy' cannot be said"),
        ("percolator", {"regexp": {"title": "a.*"}}, "a regexp over the words of title"),
        ("percolator", {"range": {"sold": {"gt": "now-1d"}}}, "the moving date 'now-1d'"),
        ("percolator", {"match_phrase": {"title": {"query": "a b", "slop": 2}}}, "slop 2"),
        ("percolator", {"bool": {"musst": []}}, "bool has no musst"),
        ("percolator", {"geo_distance": {"distance": "9 leagues", "loc": [0, 0]}}, "a length"),
        ("percolator", {"term": {"a": 1, "b": 2}}, "a query of a field has one key, got 2: a, b"),
        ("percolator", [], "a query is an object"),
        ("percolator", {"term": {"a": None}}, "a"),
        ("eventbridge", {}, "the pattern asks for nothing"),
        ("eventbridge", {"ip": [{"cidr": "10.0.0.0/8"}]}, "the matcher 'cidr' of ip cannot"),
        ("eventbridge", {"a": [{"prefix": {"wildcard": "x"}}]}, "prefix wildcard"),
        ("eventbridge", {"a": [{"equals-ignore-case": "straße"}]}, "the letter ß in any case"),
        ("eventbridge", {"a": [{"equals-ignore-case": 5}]}, "is a string"),
        ("eventbridge", {"a": [{"numeric": ["<", "3"]}]}, "numeric compares with a number"),
        ("eventbridge", {"a": [1, "x"]}, "number"),
    ],
)
def test_what_no_expression_says_is_refused(system, rule, reason):
    with pytest.raises(ExpressionError) as refused:
        converted(rule, system, TYPES)
    assert reason in str(refused.value)


def test_a_rule_that_is_nested_too_deep_is_refused():
    rule = {"match_all": {}}
    for _ in range(50):
        rule = {"bool": {"must": [rule]}}
    with pytest.raises(ExpressionError, match="nested more than 40 deep"):
        converted(rule, "percolator")


def test_rules_are_found_in_what_each_system_writes():
    query, pattern = {"term": {"a": 1}}, {"a": [1]}
    hits = {"hits": {"hits": [{"_id": "x", "_source": {"query": query}}]}}
    assert list(rules_of(hits, "percolator")) == [("x", query)]
    assert list(rules_of({"id": "y", "query": query}, "percolator")) == [("y", query)]
    assert list(rules_of(query, "percolator", 7)) == [("rule-7", query)]
    listed = {"Rules": [{"Name": "z", "EventPattern": '{"a": [1]}'}]}
    assert list(rules_of(listed, "eventbridge")) == [("z", pattern)]
    assert list(rules_of(pattern, "eventbridge")) == [("rule-1", pattern)]


def test_types_are_read_from_a_mapping():
    mapping = {
        "shop": {
            "mappings": {
                "properties": {
                    "title": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
                    "maker": {"properties": {"name": {"type": "keyword"}}},
                }
            }
        }
    }
    assert types_of(mapping) == {
        "title": "text",
        "title.raw": "keyword",
        "maker.name": "keyword",
    }
