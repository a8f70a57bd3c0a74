"""Subscriptions in normal form → columns."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from stentor.encoding.columns import SubscriptionColumns
from stentor.encoding.kinds import NEGATED
from stentor.encoding.predicates import append
from stentor.encoding.predicates.growing import UNBOUNDED_HULL, AppendedColumns
from stentor.language.normal_predicates import (
    Inside,
    Intervals,
    IsMissing,
    IsPresent,
    NormalPredicate,
)
from stentor.language.normalise import NormalForm
from stentor.language.tree import missing_position
from stentor.model import Circle, Point, Schema
from stentor.model.values.time import NEVER


class NormalisedSubscription(NamedTuple):
    """A subscription as it is encoded: its normal form, its location, until when."""

    form: NormalForm
    at: Point | None = None
    until: int | None = None

    def checked(self) -> NormalisedSubscription:
        """Itself; a RecordError where the expression uses here() and there is no position."""
        if self.at is None and any(
            isinstance(predicate.test, Inside)
            and isinstance(predicate.test.region, Circle)
            and predicate.test.region.centre is None
            for predicates in self.form.alternatives
            for predicate in predicates
        ):
            raise missing_position()
        return self


def encode_subscriptions(
    subscriptions: Iterable[NormalisedSubscription], schema: Schema
) -> SubscriptionColumns:
    """The columns of *subscriptions*; their attributes must be known to *schema*."""
    columns = AppendedColumns()
    for one in subscriptions:
        _append_subscription(columns, one, schema)
    return columns.columns()


def _append_subscription(
    columns: AppendedColumns, one: NormalisedSubscription, schema: Schema
) -> None:
    for predicates in one.form.alternatives:
        for predicate in predicates:
            _append_predicate(columns, predicate, one.at, schema)
        columns.predicate_start.append(len(columns.kind))
    columns.alternative_start.append(len(columns.predicate_start) - 1)
    columns.position.extend(one.at or (math.nan, math.nan))
    columns.until.append(NEVER if one.until is None else one.until)


def _append_predicate(
    columns: AppendedColumns, predicate: NormalPredicate, at: Point | None, schema: Schema
) -> None:
    attribute, test, weight = predicate
    kind, (low, high), start, stop = append(columns, attribute, test, at, schema.plane)
    if not isinstance(test, (Intervals, IsMissing, IsPresent)) and test.negated:
        kind |= NEGATED
        low, high = UNBOUNDED_HULL
    columns.kind.append(kind)
    columns.attribute.append(schema.code(attribute))
    columns.low.append(low)
    columns.high.append(high)
    columns.weight.append(weight)
    columns.operand_start.append(start)
    columns.operand_stop.append(stop)
