"""Subscriptions encoded in groups, put back into the order in which they came."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import Float64, Int64, SubscriptionColumns, empty
from stentor.encoding.predicates.filled import Constants
from stentor.encoding.ragged import concatenate, take
from stentor.encoding.subscriptions import NormalisedSubscription, encode_subscriptions
from stentor.encoding.template import Template
from stentor.errors import StentorError
from stentor.language.check import check_and_learn
from stentor.language.limits import Limits
from stentor.model import Expression, Point, Schema
from stentor.model.values.time import NEVER


class SubscriptionHeads(NamedTuple):
    """The ids of subscriptions to be encoded, their locations, and until when each is current."""

    ids: Sequence[str]
    position: Float64  # (n, 2) NaN where there is none
    until: Int64  # (n,) NEVER where there is no end


class EncodedSubscriptions(NamedTuple):
    """What could be encoded, in order; which rows these are; what was wrong with the others."""

    columns: SubscriptionColumns
    rows: Int64
    errors: dict[int, StentorError]


class SubscriptionCollector:
    """Groups of encoded subscriptions that become one `EncodedSubscriptions`."""

    def __init__(self, schema: Schema, limits: Limits, heads: SubscriptionHeads) -> None:
        self._schema = schema
        self._limits = limits
        self._heads = heads
        self._columns: list[SubscriptionColumns] = []
        self._rows: list[Int64] = []
        self._ordinary: dict[int, NormalisedSubscription] = {}  # by row
        self._errors: dict[int, StentorError] = {}

    def add_filled(self, template: Template, rows: list[int], constants: Constants) -> list[int]:
        """Fill *template* for *rows*; the rows that it does not fit."""
        at = np.array(rows, np.int64)
        columns, fitting = template.fill(
            constants, self._heads.position[at], self._heads.until[at], self._schema
        )
        self._columns.append(columns)
        self._rows.append(at[fitting])
        odd: list[int] = np.delete(at, fitting).tolist()
        return odd

    def add_ordinary(self, row: int, expression: str | Expression) -> None:
        """Add one row by parsing it; what is wrong with it becomes its error."""
        x, y = self._heads.position[row].tolist()
        until = int(self._heads.until[row])
        try:
            where = f"subscription {self._heads.ids[row]!r}"
            _, form = check_and_learn(expression, self._schema, where=where, limits=self._limits)
            at = None if math.isnan(x) else Point(x, y)
            subscription = NormalisedSubscription(
                form, at, None if until == NEVER else until
            ).checked()
        except StentorError as error:
            self.refuse(row, error)
        else:
            self._ordinary[row] = subscription

    def refuse(self, row: int, error: StentorError) -> None:
        """Note what is wrong with *row*."""
        self._errors[row] = error

    def encoded(self) -> EncodedSubscriptions:
        """Everything that was added, in the order of rows."""
        if self._ordinary:
            self._columns.append(encode_subscriptions(self._ordinary.values(), self._schema))
            self._rows.append(np.array(list(self._ordinary), np.int64))
        if len(self._columns) == 1:
            return EncodedSubscriptions(self._columns[0], self._rows[0], self._errors)
        columns = concatenate(self._columns) if self._columns else empty(SubscriptionColumns)
        rows = np.concatenate([np.zeros(0, np.int64), *self._rows])
        order = np.argsort(rows, kind="stable").astype(np.int64)
        if not np.array_equal(order, np.arange(len(order))):
            columns, rows = take(columns, order), rows[order]
        return EncodedSubscriptions(columns, rows, self._errors)
