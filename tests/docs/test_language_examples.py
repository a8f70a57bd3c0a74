"""Every line of the `match` and `error` blocks, by the definition of a match and by the engine."""

import json
import warnings
from typing import Any, NamedTuple

import pytest

from stentor import Engine
from stentor.errors import NeverMatchesWarning, StentorError
from stentor.language.check import check_and_learn
from stentor.language.evaluate import evaluate
from stentor.model import Point, Schema
from stentor.wire.events import event_from_dict
from stentor.wire.records import record_from_dict
from tests.docs.documents import Line, blocks


class Example(NamedTuple):
    """One line of a `match` block."""

    line: Line
    expression: str
    event: dict[str, Any]
    at: Point | None
    plane: bool
    truth: bool | None
    score: float | None


def example(line: Line, *, plane: bool) -> Example:
    """expression | event | perhaps: at [x, y] | true, false or unknown, perhaps: score 2."""
    expression, event, *place, answer = line.cells
    truth, _, score = answer.partition(", score ")
    return Example(
        line,
        expression,
        {"id": "the event", **json.loads(event)},
        Point(*json.loads(place[0].removeprefix("at "))) if place else None,
        plane,
        {"true": True, "false": False, "unknown": None}[truth],
        float(score) if score else None,
    )


MATCHES = [
    example(line, plane=block.name == "plane") for block in blocks("match") for line in block.lines
]
ERRORS = [line for block in blocks("error") for line in block.lines]
matches = pytest.mark.parametrize("example", MATCHES, ids=[str(one.line) for one in MATCHES])


@matches
def test_the_definition_of_a_match_agrees(example: Example) -> None:
    schema = Schema(plane=example.plane)
    tree, _ = check_and_learn(example.expression, schema, where="the example")
    event = event_from_dict(example.event, schema)
    found = evaluate(tree, event, here=example.at, plane=example.plane)
    assert found.truth is example.truth
    if example.score is not None:
        assert found.score == example.score


@matches
def test_an_engine_agrees(example: Example) -> None:
    engine = Engine(schema=Schema(plane=example.plane), clock=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NeverMatchesWarning)
        engine.subscribe("before", example.expression, at=example.at)
        wanted_by = engine.publish(example.event, until=60, time=0)
        changes = engine.subscribe("after", example.expression, at=example.at, time=1)
    assert wanted_by == (["before"] if example.truth else [])
    assert changes.added == (["the event"] if example.truth else [])
    if example.score is not None:
        assert engine.top(example.event, 1) == [("after", example.score)]


@pytest.mark.parametrize("line", ERRORS, ids=str)
def test_a_mistake_is_refused_with_this_message(line: Line) -> None:
    mistake, piece = line.cells
    with pytest.raises(StentorError) as caught:
        _read(mistake)
    assert piece in str(caught.value)


def _read(mistake: str) -> None:
    """Take in an expression, or a record where it is a JSON object."""
    if mistake.startswith("{"):
        record_from_dict(json.loads(mistake), Schema(), default_op="publish")
    else:
        check_and_learn(mistake, Schema(), where="the example")
