"""Calls of one moment as one batch: each has the answer that it would have had by itself."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stentor.encoding.template import SubscriptionHeads
from stentor.encoding.texts import TextEncoder
from stentor.engine import cold
from stentor.engine.batch import NewSubscriptions, RecordEncoder
from stentor.engine.engine import Engine
from stentor.engine.report import RecordBatch, Report, WantedBy
from stentor.engine.tags import NO_TAGS, Tags
from stentor.errors import NeverMatchesWarning, SettingsError, StentorError
from stentor.language.check import check_expression
from stentor.model import Subscription
from stentor.model.record import Move, Record, Subscribe, Unsubscribe, Withdraw
from stentor.model.values import read_location
from stentor.model.values.labels import read_labels, read_owner
from stentor.model.values.string import read_id
from stentor.model.values.time import NEVER, read_time
from stentor.wire.records import SubscriptionFields

#: The methods of an engine whose calls may be answered together.
TOGETHER = frozenset(("subscribe", "unsubscribe", "move", "publish", "update", "withdraw"))


class Call(NamedTuple):
    """A method of `Engine`, and what it is given."""

    method: str
    args: tuple[Any, ...]
    settings: Mapping[str, Any]


def answer_together(engine: Engine, calls: Sequence[Call]) -> list[Any]:
    """What each of *calls*, all of methods in `TOGETHER`, gives or raises, in order.

    Cost: that of a step with as many records; of a durable engine one commit.
    """
    cold.expect(engine, calls)
    found: list[Any] = engine._answer(lambda: _answers(engine, calls))
    for call, answer in zip(calls, found, strict=True):
        if isinstance(answer, _Never):
            message = f"subscription {call.args[0]!r} can never match: it asks for a contradiction"
            warnings.warn(message, NeverMatchesWarning, stacklevel=2)
    return [answer.changes if isinstance(answer, _Never) else answer for answer in found]


def subscribe_texts(engine: Engine, fields: Sequence[SubscriptionFields], time: int) -> Report:
    """Let the subscriptions that *fields* describe be there since *time*; an answer for each.

    For brokers: keys may be longer than ids. Cost: that of `subscribe_batch` of texts.
    """
    untils = [NEVER if one.until is None else one.until for one in fields]
    position = np.full((len(fields), 2), np.nan)
    for row, one in enumerate(fields):
        if one.at is not None:
            position[row] = one.at
    heads = SubscriptionHeads([one.id for one in fields], position, np.array(untils, np.int64))
    with engine._lock:
        encoder = TextEncoder(engine.schema, engine.limits.expression)
        encoded = encoder.encode([one.text for one in fields], heads)
        good = [fields[row] for row in encoded.rows.tolist()]
        ids, times = [one.id for one in good], np.full(len(good), time, np.int64)
        tags = [Tags(one.owner, one.labels) for one in good]
        own = tags if any(one != NO_TAGS for one in tags) else None
        arriving = NewSubscriptions(encoded.columns, ids, [one.text for one in good], times, own)
        return engine._report(RecordBatch(len(fields), ids, encoded.rows, encoded.errors), arriving)


class _Never(NamedTuple):
    changes: Any


def _answers(engine: Engine, calls: Sequence[Call]) -> list[Any]:
    with engine._lock:
        engine._forget_unused()
        encoder = RecordEncoder(engine.schema, engine.limits, engine._clock.now)
        wrong: dict[int, BaseException] = {}
        for number, call in enumerate(calls):
            try:
                _ADD[call.method](engine, encoder, *call.args, **call.settings)
            except StentorError as error:
                wrong[number] = error
            except TypeError as error:  # an argument that the method does not have
                wrong[number] = error
        report = engine._report(encoder.batch(), encoder.arriving())
        never = set(report.never)
        records = iter(range(len(report)))
        answers: list[Any] = []
        for number, call in enumerate(calls):
            if number in wrong:
                answers.append(wrong[number])
                continue
            record = next(records)
            answer = _as_called(call.method, report, record)
            answers.append(_Never(answer) if record in never else answer)
    return answers


def _as_called(method: str, report: Report, record: int) -> Any:
    """The answer of *method*, which a batch gives in its own form."""
    answer: Any = report[record]
    if isinstance(answer, StentorError):
        return answer
    if method == "unsubscribe":
        return None
    if method == "withdraw":
        return answer.left
    if method in ("publish", "update"):
        shrunk = [region for one, region in report.shrunk if one == record]
        if method == "update":
            answer.shrunk.extend(shrunk)
            return answer
        answer = WantedBy(answer)
        answer.shrunk = shrunk
    return answer


def _subscribe(
    engine: Engine,
    encoder: RecordEncoder,
    id: str,
    expression: Any,
    *,
    at: Any = None,
    until: Any = None,
    time: Any = None,
    parameters: Mapping[str, Any] | None = None,
    owner: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> None:
    id, own, said = read_id(id), read_owner(owner), read_labels(labels)
    location = read_location(at, plane=engine.schema.plane)
    end, when = read_time(until, "until"), read_time(time, "time")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise SettingsError(f"parameters are a dict by name, got {type(parameters).__name__}")
    examined = check_expression(
        expression,
        engine.schema,
        where=f"subscription {id!r}",
        limits=engine.limits.expression,
        parameters=parameters,
    )
    wanted = Subscription(id, examined.tree, location, end, own, said)
    encoder.add_known(Subscribe(wanted, when), examined)


def _move(engine: Engine, encoder: RecordEncoder, id: str, at: Any, *, time: Any = None) -> None:
    location = read_location(at, plane=engine.schema.plane)
    if location is None:
        raise SettingsError("a move says where to: (longitude, latitude)")
    encoder.add_known(Move(read_id(id), location, read_time(time, "time")))


def _end(kind: type[Unsubscribe | Withdraw]) -> Any:
    def add(engine: Engine, encoder: RecordEncoder, id: str, *, time: Any = None) -> None:
        record: Record = kind(read_id(id), read_time(time, "time"))
        encoder.add_known(record)

    return add


def _event(op: Any) -> Any:
    def add(
        engine: Engine,
        encoder: RecordEncoder,
        event: Any,
        *,
        until: Any = None,
        time: Any = None,
        among: Mapping[str, str] | None = None,
    ) -> None:
        end, when = read_time(until, "until"), read_time(time, "time")
        labels = None if among is None else read_labels(among, "among")
        encoder.add_event(event, op, end, when, labels)

    return add


_ADD: dict[str, Any] = {
    "subscribe": _subscribe,
    "unsubscribe": _end(Unsubscribe),
    "withdraw": _end(Withdraw),
    "move": _move,
    "publish": _event("publish"),
    "update": _event("update"),
}
