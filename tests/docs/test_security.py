"""SECURITY.md names the limits that there are, and records at the border are taken or refused."""

import dataclasses
import importlib
import json

import msgspec
import pytest

from stentor import Engine, Limits, RecordLimits, StentorError
from stentor.language.regular import compiled
from stentor.model.values.labels import MOST_LABELS
from stentor.model.values.string import MOST_ID_BYTES
from stentor.service.settings import (
    LimitSettings,
    LinkQueueSettings,
    QueueSettings,
    ServeSettings,
    WebhookSettings,
)
from stentor.wire.json_text import MOST_DEPTH, from_json
from tests.docs.documents import table

SECTIONS = {
    "[limits]": LimitSettings(),
    "[queue]": QueueSettings(),
    "[webhooks]": WebhookSettings(),
    "[link_queue]": LinkQueueSettings(),
}
LISTED = {name: value for name, value, _ in table("SECURITY.md", "limit")}


@pytest.mark.parametrize("name", LISTED)
def test_a_limit_is_what_the_page_says(name: str) -> None:
    section, _, key = name.rpartition(" ")
    if section:
        found = getattr(SECTIONS[section], key)
    elif "." not in name:
        found = getattr(ServeSettings(), name)
    else:
        module, _, constant = name.rpartition(".")
        found = getattr(importlib.import_module(f"stentor.{module}"), constant)
    assert LISTED[name] == f"{found:,}"


def test_every_limit_of_a_service_is_listed() -> None:
    fields = msgspec.structs.fields(LimitSettings)
    assert {f"[limits] {one.name}" for one in fields} <= LISTED.keys()
    assert len(dataclasses.fields(RecordLimits)) == 5
    assert len(dataclasses.fields(Limits)) == 12


def nested(depth: int) -> str:
    return '{"x": ' + "[" * depth + "]" * depth + "}"


@pytest.mark.parametrize(
    "take",
    [
        pytest.param(lambda n: Engine().subscribe("i" * (MOST_ID_BYTES + n), "a = 1"), id="id"),
        pytest.param(lambda n: Engine().publish({"id": "i" * (MOST_ID_BYTES + n)}), id="event id"),
        pytest.param(
            lambda n: Engine().publish({"id": "e", "a" * (MOST_ID_BYTES + n): 1}), id="attribute"
        ),
        pytest.param(
            lambda n: Engine().subscribe(
                "s", "a = 1", labels={f"l{k}": "x" for k in range(MOST_LABELS + n)}
            ),
            id="labels",
        ),
        pytest.param(lambda n: from_json(nested(MOST_DEPTH + n).encode()), id="depth of JSON"),
    ],
)
def test_one_more_than_a_limit_is_refused(take) -> None:  # type: ignore[no-untyped-def]
    take(0)
    with pytest.raises(StentorError):
        take(1)


SMALL = Limits(
    bytes=60,
    depth=3,
    predicates=3,
    list_length=3,
    alternatives=4,
    words=2,
    pattern_length=5,
    pattern_work=compiled("RLIKE", "abc.d").work + 20,
    pattern_bytes=2 * len(compiled("RLIKE", "abc.d").table) - 1,
)


@pytest.mark.parametrize(
    ("taken", "refused"),
    [
        ("a = 1" + " " * 55, "a = 1" + " " * 56),
        ("((a = 1))", "((((a = 1))))"),
        ("a = 1 AND b = 1 AND c = 1", "a = 1 AND b = 1 AND c = 1 AND d = 1"),
        ("a IN (1, 2, 3)", "a IN (1, 2, 3, 4)"),
        ("has_all(t, 'x', 'y')", "has_all(t, 'x', 'y', 'z')"),
        ("t LIKE 'abcd%'", "t LIKE 'abcde%'"),
        ("t RLIKE 'abc.d'", "t RLIKE 'abc.de'"),
        ("t RLIKE 'ab' AND t ILIKE '%b'", "t RLIKE 'abc.d' AND t ILIKE '%b'"),
        ("t RLIKE '[abc]' AND (a = 1 OR b = 1)", "t RLIKE 'abc.d' AND (a = 1 OR b = 1)"),
    ],
)
def test_one_more_than_an_expression_may_have_is_refused(taken: str, refused: str) -> None:
    engine = Engine(limits=RecordLimits(expression=SMALL))
    engine.subscribe("s", taken)
    with pytest.raises(StentorError, match="limit"):
        engine.subscribe("t", refused)


def test_one_more_than_a_record_may_have_is_refused() -> None:
    small = RecordLimits(attributes=2, string_bytes=5, record_bytes=8)
    engine = Engine(limits=small)
    for taken in ({"x": 1, "y": 2}, {"t": "abcde"}, {"t": "abcd", "u": "abcd"}):
        engine.publish({"id": "a"} | taken)
    for refused in ({"x": 1, "y": 2, "z": 3}, {"t": "abcdef"}, {"t": "abcde", "u": "abcd"}):
        with pytest.raises(StentorError):
            engine.publish({"id": "d"} | refused)
    assert json.dumps(sorted(engine.live())) == "[]"
