"""Texts, parameter tables and events to columns: items per second on one core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import NO_STRING, EventColumns, SubscriptionColumns
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.parameters import ParameterEncoder
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.encoding.template import SubscriptionHeads
from stentor.encoding.texts import TextEncoder
from stentor.language.check import check_and_learn
from stentor.language.evaluate import evaluate
from stentor.language.parser import parse
from stentor.model import Schema
from stentor.model.values.time import NEVER
from stentor.wire.events import event_from_dict
from stentor.wire.tables import read_event_table
from stentor_lab.measure import Answer, Case, measure, stopwatch
from stentor_lab.result import BenchOptions, Table, Unit
from stentor_lab.workloads.phones import SHAPES, Phones

SIZE: Final = 100_000
#: What goes through Python objects one by one is measured on a part of it.
ONE_BY_ONE: Final = 2_000


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Texts, structured subscriptions, events; *size* is the rows of each."""
    size = options.size or SIZE
    phones = Phones(options.seed)
    workload = {"workload": "phones", "seed": options.seed, "size": size}
    return (
        _few_shapes(phones, size, options, workload),
        _new_shapes(phones, size, options, workload),
        _structured(phones, size, options, workload),
        _events(phones, size, options, workload),
    )


def _few_shapes(
    phones: Phones, size: int, options: BenchOptions, workload: dict[str, Any]
) -> Table:
    title = "Expressions of six predicates in few shapes to columns"
    schema = phones.schema
    texts = phones.mixed_texts(size)
    part = texts[:ONE_BY_ONE]
    trees = [parse(text, schema=schema) for text in part]
    offers = [event_from_dict(row, schema) for row in phones.offers(len(part)).to_pylist()]

    def parsed() -> None:
        for text in part:
            parse(text, schema=schema)

    def evaluated() -> None:
        for tree, offer in zip(trees, offers, strict=True):
            evaluate(tree, offer)

    cases = [
        *_text_cases(texts, part, schema),
        Case("parse alone", stopwatch(parsed), len(part)),
        Case("evaluate on one event", stopwatch(evaluated), len(part)),
    ]
    rows = measure(cases, options.repetitions, options.progress, title)
    return Table(title, {**workload, "shapes": len(SHAPES)}, "expressions", Unit.RATE, rows)


def _new_shapes(
    phones: Phones, size: int, options: BenchOptions, workload: dict[str, Any]
) -> Table:
    title = "Expressions of six predicates in ever new shapes to columns"
    texts = list(phones.new_shapes(min(size, ONE_BY_ONE)))
    cases = _text_cases(texts, texts, phones.schema)
    rows = measure(cases, options.repetitions, options.progress, title)
    return Table(title, {**workload, "size": len(texts)}, "expressions", Unit.RATE, rows)


def _text_cases(texts: Sequence[str], part: Sequence[str], schema: Schema) -> list[Case]:
    """*part* one by one, all *texts* by their shapes; they agree on *part*."""

    def one_by_one() -> Answer:
        forms = (check_and_learn(text, schema, where=str(row))[1] for row, text in enumerate(part))
        return encode_subscriptions(
            (NormalisedSubscription(form).checked() for form in forms), schema
        )

    return [
        Case("one by one", stopwatch(one_by_one), len(part), one_by_one),
        Case(
            "by shape",
            stopwatch(lambda: _by_shape(texts, schema)),
            len(texts),
            lambda: _by_shape(part, schema),
        ),
    ]


def _structured(
    phones: Phones, size: int, options: BenchOptions, workload: dict[str, Any]
) -> Table:
    title = "Subscriptions of one shape to columns: as texts, as a table of constants"
    shape, schema = 1, phones.schema
    texts = phones.texts(shape, size)
    table = phones.constants(shape, size)
    values = {name: table[name] for name in table.column_names}

    def from_texts() -> Answer:
        return _by_shape(texts, schema)

    def from_table() -> Answer:
        encoded = ParameterEncoder(SHAPES[shape], schema).encode(values, _asked(size))
        return encoded.columns

    cases = [
        Case("texts", stopwatch(from_texts), size, from_texts),
        Case("Arrow table of constants", stopwatch(from_table), size, from_table),
    ]
    rows = measure(cases, options.repetitions, options.progress, title)
    return Table(title, workload, "subscriptions", Unit.RATE, rows)


def _events(phones: Phones, size: int, options: BenchOptions, workload: dict[str, Any]) -> Table:
    title = "Events of ten attributes and a text of nine terms to columns"
    schema = phones.schema
    offers = phones.offers(size)
    part = offers.slice(0, ONE_BY_ONE)
    dicts = part.to_pylist()

    def one_by_one() -> Answer:
        arrivals = (
            TimedEvent(event_from_dict(row, schema), seq=seq) for seq, row in enumerate(dicts)
        )
        return _by_event(encode_events(arrivals, schema))

    cases = [
        Case("dicts, one by one", stopwatch(one_by_one), len(dicts), one_by_one),
        Case(
            "Arrow table",
            stopwatch(lambda: read_event_table(offers, schema)),
            size,
            lambda: _by_event(read_event_table(part, schema).columns),
        ),
    ]
    rows = measure(cases, options.repetitions, options.progress, title)
    return Table(title, workload, "events", Unit.RATE, rows)


def _asked(count: int) -> SubscriptionHeads:
    ids = [str(row) for row in range(count)]
    return SubscriptionHeads(ids, np.full((count, 2), np.nan), np.full(count, NEVER))


def _by_shape(texts: Sequence[str], schema: Schema) -> SubscriptionColumns:
    return TextEncoder(schema).encode(texts, _asked(len(texts))).columns


def _by_event(columns: EventColumns) -> Answer:
    """What *columns* say, whichever order their strings are stored in."""
    is_string = columns.string != NO_STRING
    return (
        columns.value_start,
        columns.attribute,
        columns.low,
        columns.high,
        is_string,
        columns.string_hash[columns.string[is_string]],
        columns.term_start,
        columns.term_hash,
        columns.until,
        columns.time,
        columns.seq,
    )
