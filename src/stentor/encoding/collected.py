"""Subscriptions encoded in groups, put back into the order in which they came."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stentor.encoding.columns import Float64, Int64, SubscriptionColumns, empty
from stentor.encoding.fillers import Constants
from stentor.encoding.ragged import concatenate, take
from stentor.encoding.subscriptions import Standing, encode_subscriptions
from stentor.encoding.template import Template
from stentor.errors import StentorError
from stentor.language.admit import admit
from stentor.language.limits import Limits
from stentor.model import Expression, Point, Schema
from stentor.model.time import NEVER


class Asked(NamedTuple):
    """Whose subscriptions are to be encoded, where each stands and until when."""

    ids: Sequence[str]
    position: Float64  # (n, 2) NaN where there is none
    until: Int64  # (n,) NEVER where there is no end


class Encoded(NamedTuple):
    """What could be encoded, in order; which rows these are; what was wrong with the others."""

    columns: SubscriptionColumns
    rows: Int64
    errors: dict[int, StentorError]


class Collected:
    """Groups of encoded subscriptions on their way to one `Encoded`."""

    def __init__(self, schema: Schema, limits: Limits, asked: Asked) -> None:
        self._schema = schema
        self._limits = limits
        self._asked = asked
        self._columns: list[SubscriptionColumns] = []
        self._rows: list[Int64] = []
        self._ordinary: dict[int, Standing] = {}  # by row
        self._errors: dict[int, StentorError] = {}

    def add_filled(self, template: Template, rows: list[int], constants: Constants) -> list[int]:
        """Fill *template* for *rows*; the rows that it does not fit."""
        at = np.array(rows, np.int64)
        columns, fitting = template.fill(
            constants, self._asked.position[at], self._asked.until[at], self._schema
        )
        self._columns.append(columns)
        self._rows.append(at[fitting])
        odd: list[int] = np.delete(at, fitting).tolist()
        return odd

    def add_ordinary(self, row: int, expression: str | Expression) -> None:
        """Take in one row in the ordinary way; what is wrong with it becomes its error."""
        x, y = self._asked.position[row].tolist()
        until = int(self._asked.until[row])
        try:
            where = f"subscription {self._asked.ids[row]!r}"
            _, form = admit(expression, self._schema, where=where, limits=self._limits)
            at = None if math.isnan(x) else Point(x, y)
            standing = Standing(form, at, None if until == NEVER else until).checked()
        except StentorError as error:
            self.refuse(row, error)
        else:
            self._ordinary[row] = standing

    def refuse(self, row: int, error: StentorError) -> None:
        """Note what is wrong with *row*."""
        self._errors[row] = error

    def encoded(self) -> Encoded:
        """Everything that was added, in the order of rows."""
        if self._ordinary:
            self._columns.append(encode_subscriptions(self._ordinary.values(), self._schema))
            self._rows.append(np.array(list(self._ordinary), np.int64))
        if len(self._columns) == 1:
            return Encoded(self._columns[0], self._rows[0], self._errors)
        columns = concatenate(self._columns) if self._columns else empty(SubscriptionColumns)
        rows = np.concatenate([np.zeros(0, np.int64), *self._rows])
        order = np.argsort(rows, kind="stable").astype(np.int64)
        if not np.array_equal(order, np.arange(len(order))):
            columns, rows = take(columns, order), rows[order]
        return Encoded(columns, rows, self._errors)
