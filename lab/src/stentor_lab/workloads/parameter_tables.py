"""Subscriptions of many forms → columns: a table of constants for each form."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import Float64, Int64, SubscriptionColumns, empty
from stentor.encoding.parameters import ParameterEncoder
from stentor.encoding.ragged import concatenate, take
from stentor.encoding.template import SubscriptionHeads
from stentor.model import Schema
from stentor.model.values.time import NEVER

#: Rows, the expression that they share, and their constants by name.
Form = tuple[Int64, str, pa.Table]


def encoded_forms(
    forms: Iterable[Form], schema: Schema, positions: Float64 | None = None
) -> SubscriptionColumns:
    """The columns of all rows of *forms*, in the order of rows, each at its one of *positions*.

    Cost: about five microseconds a row.
    """
    rows, columns = [], []
    for own, expression, table in forms:
        if len(own):
            at = np.full((len(own), 2), np.nan) if positions is None else positions[own]
            asked = SubscriptionHeads(own.astype(str).tolist(), at, np.full(len(own), NEVER))
            values = {name: table[name] for name in table.column_names}
            encoded = ParameterEncoder(expression, schema).encode(values, asked)
            assert not encoded.errors, "a workload asks for what can be asked for"
            rows.append(own)
            columns.append(encoded.columns)
    if not rows:
        return empty(SubscriptionColumns)
    return take(concatenate(columns), np.argsort(np.concatenate(rows), kind="stable"))
