"""One by one equals a step equals a batch: answers, errors and what the schema learns."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor import Engine, _jit
from stentor.errors import NeverMatchesWarning, StentorError
from stentor.index.catalog import names

SUBSCRIPTIONS = {
    "cheap": "price < 300",
    "words": "has_all(text, 'ipad sale')",
    "brand": "brand IN ('apple', 'é', '') OR NOT used",
    "near": "ST_DWithin(loc, here(), 5000)",
    "late": "since > TIMESTAMP '2026-01-01 00:00:00'",
    "like": "brand LIKE 'a%' AND WEIGHT(price > 10, 2)",
    "none": "price IS NULL AND text IS NOT NULL",
}
AT = (151.2, -33.9)

CELLS: list[Any] = [
    1.5, -0.0, 299, 2**53 + 1, 10**400, float("nan"), float("inf"), True, False, None,
    "apple", "é", "", "iPad SALE now", "IPAD\u0301 東京都 sale ipad", "\ud800", "x" * 3000,
    "2026-05-01", "2026-05-01T00:00:00+00:00", datetime(2026, 5, 1, tzinfo=UTC), Decimal("1.25"),
    [151.2, -33.9], (151.2, -33.9), [151, -33.5], [200.0, 0.0], [1.0], ["a", "b"],
    [float("nan"), 1],
    {"lon": 151.2, "lat": -33.9}, {"low": 1, "high": 400}, {"low": 3, "high": 1}, {"a": 1}, b"x",
    np.float64(12.5), np.int64(7), np.bool_(True), np.array([151.2, -33.9]), object(),
]  # fmt: skip
NAMES = ["price", "text", "brand", "used", "loc", "since", "new", "é", "", "x" * 600, "type"]
FIELDS: dict[str, list[Any]] = {
    "until": [None, 5, 2_000_000_000, "2030-01-01", "never", float("nan")],
    "time": [None, 1, 100, "2026-05-05", 10**15, True],
    "weights": [None, {}, {"price": 2}, {"price": -1}, {"new weight": 1}, {"": 1}, [1]],
    "seq": [None, 3, -1, "x"],
    "attributes": [{"price": 1}, {"id": "inner"}, 7, {"price": [0, 1, 2]}],
    "specversion": ["1.0"],
    "geometry": [None, {"type": "Point", "coordinates": [151.2, -33.9]}],
    "properties": [{"price": 5}],
}  # fmt: skip
IDS = ["e1", "e2", 7, "", None, "ü", "y" * 600, 1.5]


@st.composite
def events(draw: st.DrawFn) -> dict[Any, Any]:
    """An event as a stranger may send it, mostly a good one."""
    raw: dict[Any, Any] = {"id": draw(st.sampled_from(IDS)) if draw(st.booleans()) else "e3"}
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=5, unique=True)):
        raw[name] = draw(st.sampled_from(CELLS))
    for name in draw(st.lists(st.sampled_from([*FIELDS]), max_size=2, unique=True)):
        raw[name] = draw(st.sampled_from(FIELDS[name]))
    if draw(st.integers(0, 20)) == 0:
        raw[draw(st.sampled_from([7, None, ("a",)]))] = 1
    return raw


def made(index: str, schema: dict[str, str] | None) -> Engine:
    """An engine with subscriptions of all kinds."""
    engine = Engine(index, schema=schema, clock=None)
    for id, text in SUBSCRIPTIONS.items():
        engine.subscribe(id, text, at=AT)
    return engine


def told(answer: Any) -> Any:
    """*answer* so that two of them can be compared."""
    return (type(answer), str(answer)) if isinstance(answer, StentorError) else answer


def published(engine: Engine, raw: dict[Any, Any]) -> Any:
    """What `publish` answers, or raises."""
    try:
        return list(engine.publish(raw))
    except StentorError as error:
        return error


DECLARED = {
    "price": "number", "text": "string", "brand": "string", "used": "boolean",
    "loc": "point", "since": "timestamp",
}  # fmt: skip


@pytest.mark.parametrize("schema", [None, DECLARED], ids=["learned", "declared"])
@settings(max_examples=150, deadline=None)
@given(raws=st.lists(events(), min_size=1, max_size=6))
def test_one_by_one_equals_step_equals_batch(
    schema: dict[str, str] | None, raws: list[Any]
) -> None:
    single, stepped, batched = (made("scan", schema) for _ in range(3))
    one_by_one = [told(published(single, raw)) for raw in raws]
    step = stepped.step([{**raw, "op": "publish"} for raw in raws])
    assert [told(answer) for answer in step] == one_by_one
    batch = batched.publish_batch(raws)
    assert [told(answer) for answer in batch] == one_by_one
    for other in (stepped, batched):
        assert other.schema.to_dict() == single.schema.to_dict()
        assert other.stats() == single.stats()


@pytest.mark.parametrize("index", names())
def test_an_event_by_itself_finds_what_a_batch_finds(index: str) -> None:
    rng = np.random.default_rng(3)
    engine = Engine(index, clock=None)
    texts = [f"has_any(text, 'word{k} word{k + 1}') AND price < {10 * k}" for k in range(40)]
    texts += [
        f"WEIGHT(price BETWEEN {k} AND {k + 90}, {k % 7}) OR brand = 'b{k}'" for k in range(80)
    ]
    texts += [f"ST_DWithin(loc, here(), {3000 * k}) AND NOT used" for k in range(1, 40)]
    for number, text in enumerate(texts):
        at = (151.2 + number / 400, -33.9)
        engine.subscribe(f"s{number}", text, at=at, until=500 if number % 9 == 0 else None)
    for number in range(0, len(texts), 7):
        engine.unsubscribe(f"s{number}")
    for number in range(1, len(texts), 7):
        engine.move(f"s{number}", (151.25, -33.95))
    for number in range(120):
        raw = {
            "id": f"e{number}",
            "price": float(rng.integers(0, 200)),
            "text": " ".join(f"Word{k}" for k in rng.integers(0, 45, 6)),
            "brand": f"b{rng.integers(0, 90)}",
            "loc": [151.2 + float(rng.random()) / 3, -33.9],
            "used": bool(rng.integers(0, 2)),
            "weights": {"price": 2, "brand": 3},
            "time": 10 * number,
        }
        wanted = engine.publish(raw)
        best = engine.top(raw, 5)
        again = engine.publish_batch([{**raw, "id": "again"}])
        assert again[0] == wanted
        ranked = engine.publish_batch([{**raw, "id": "top"}], top=5)
        assert ranked[0] == [id for id, _ in best]
        assert ranked.matches["score"].to_pylist() == [score for _, score in best]
        assert wanted == [id for id in engine if engine.explain(id, raw).matches]


@pytest.mark.filterwarnings("ignore::stentor.errors.NeverMatchesWarning")
def test_subscriptions_one_by_one_equal_a_batch() -> None:
    texts = [
        *SUBSCRIPTIONS.values(),
        "price <",
        "price = 'x'",
        "price < 3 AND price > 5",
        "other = 1",
    ]
    ids = [f"s{number}" for number in range(len(texts))]
    ids[5] = ids[2]  # one that stands already
    single, stepped, batched = (Engine(clock=None) for _ in range(3))
    answers: list[Any] = []
    for id, text in zip(ids, texts, strict=True):
        try:
            answers.append(told(single.subscribe(id, text, at=AT)))
        except StentorError as error:
            answers.append(type(error))
    raws = [
        {"op": "subscribe", "id": id, "expression": text, "at": list(AT)}
        for id, text in zip(ids, texts, strict=True)
    ]
    columns = {"id": ids, "expression": texts, "at": [list(AT)] * len(ids)}
    for report, engine in (
        (stepped.step(raws), stepped),
        (batched.subscribe_batch(pa.table(columns)), batched),
    ):
        found = [type(one) if isinstance(one, StentorError) else one for one in report]
        assert found == answers
        assert engine.schema.to_dict() == single.schema.to_dict()
        assert [engine.get(id) for id in engine] == [single.get(id) for id in single]


def test_constants_are_kept_as_they_were() -> None:
    most = np.array([1.0, 2.0, 3.0])
    engine = Engine(clock=None)
    engine.subscribe_batch(pa.table({"id": ["a", "b", "c"], "most": most}), "price < :most")
    most[:] = 9.0
    assert engine.get("b")["expression"] == "price < 2"
    engine.unsubscribe("a")
    engine.subscribe("d", "price < 4")
    engine.rebuild()
    assert [engine.get(id)["expression"] for id in engine] == [
        "price < 2",
        "price < 3",
        "price < 4",
    ]


def test_a_large_event_leaves_no_trace() -> None:
    engine = made("scan", None)
    small = {"id": "e", "price": 1, "text": "ipad sale"}
    before = engine.publish(small)
    huge = {"id": "huge", "text": "ipad " * 190_000, **{f"a{k}": k for k in range(2000)}}
    assert "words" not in engine.publish(huge)
    assert engine.publish(small) == before
    assert engine.publish({**small, "text": "ipad sale " * 1000}) == before


@pytest.mark.parametrize("index", ["scan", "ap_tree layered"])
@settings(max_examples=60, deadline=None)
@given(raw=events())
def test_why_not_blames_a_predicate_that_fails(index: str, raw: dict[Any, Any]) -> None:
    engine = made(index, None)
    with pytest.warns(NeverMatchesWarning):
        engine.subscribe("never", "price < 3 AND price > 5")
    ids = list(engine)
    raw = {**raw, "id": "asked"}
    try:
        found = engine.why_not(raw, ids)
    except StentorError as error:
        with pytest.raises(type(error)):
            engine.explain(ids[0], raw)
        return
    for id, rejection in zip(ids, found, strict=True):
        explained = engine.explain(id, raw)
        assert explained.matches == (rejection is None)
        if rejection is not None and rejection.attribute is not None:
            failing = [
                finding.predicate
                for alternative in explained.alternatives
                for finding in alternative.findings
                if finding.truth is not True
            ]
            assert any(rejection.attribute in predicate for predicate in failing)
    counts = engine.why_not_counts(raw)
    assert sum(one.count for one in counts) == sum(one is not None for one in found)
    for one in counts:
        named = [r for r in found if r and (r.attribute, r.reason) == (one.attribute, one.reason)]
        assert len(named) == one.count


PACKAGE = str(Path(_jit.__file__).parent)
#: What kernels that skip Numba's look-up of types are called by.
DIRECT = next(one for one in _jit.direct.__code__.co_consts if isinstance(one, CodeType))
#: MICS has no kernel of its own for a single event: it finds alternatives for brokers, by batches.
SINGLE = ["auto", *(name for name in names() if " " not in name and name != "mics")]


@pytest.mark.parametrize("index", SINGLE)
def test_an_event_passes_through_few_files_and_two_kernels(
    index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: set[str] = set()
    kernels: list[str] = []
    dispatched = _jit._Kernel.__call__

    def counted(kernel: Any, *arguments: Any) -> Any:
        if sys._getframe(1).f_code is not DIRECT:
            kernels.append(kernel.py_func.__name__)
        return dispatched(kernel, *arguments)

    monkeypatch.setattr(_jit._Kernel, "__call__", counted, raising=False)
    engine = made(index, None)
    raw = {"text": "iPad sale", "price": 5, "loc": [151.2, -33.9]}
    engine.publish({"id": "e1", **raw})  # what is kept between calls is there
    engine.subscribe("last", "price < 7")  # and what is looked up anew after a change
    kernels.clear()

    def watch(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            files.add(code.co_filename)
            if code is DIRECT:
                kernels.append(frame.f_locals["function"].py_func.__name__)

    sys.setprofile(watch)
    try:
        wanted = engine.publish({"id": "e2", **raw})
    finally:
        sys.setprofile(None)
    assert "last" in wanted
    assert 5 < len(files) <= 15, sorted(files)
    assert len(kernels) == 2, kernels  # one encodes, one matches
