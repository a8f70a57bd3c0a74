"""Cells → plain Python values, as dicts of records have them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from stentor.encoding.columns import Float64
from stentor.encoding.event_batches import StringColumn
from stentor.model import Kind
from stentor.wire.cells.layout import Booleans, Cells
from stentor.wire.cells.times import Instants

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def plain_cells(cells: Cells, usable: Booleans) -> list[Any]:
    """The value of each row; None where it is missing or the row is not *usable*."""
    present = cells.valid & usable
    if cells.strings is not None:
        return _strings(cells.strings, present)
    low = _scalars(cells.kind, np.where(present, cells.low, 0.0))
    if cells.high is cells.low:
        found = low
    else:
        high = _scalars(cells.kind, np.where(present, cells.high, 0.0))
        if cells.kind is Kind.POINT:
            found = [[x, y] for x, y in zip(low, high, strict=True)]
        else:
            found = [{"low": one, "high": two} for one, two in zip(low, high, strict=True)]
    return [one if there else None for one, there in zip(found, present.tolist(), strict=True)]


def plain_instants(instants: Instants, usable: Booleans) -> list[datetime | None]:
    """The instant of each row; None where there is none or the row is not *usable*."""
    present = (instants.valid & usable).tolist()
    return [
        _EPOCH + timedelta(microseconds=one) if there else None
        for one, there in zip(instants.micros.tolist(), present, strict=True)
    ]


def _strings(strings: StringColumn, present: Booleans) -> list[str | None]:
    data, offsets = strings.data.tobytes(), strings.offsets.tolist()
    return [
        data[start:stop].decode() if there else None
        for start, stop, there in zip(offsets, offsets[1:], present.tolist(), strict=False)
    ]


def _scalars(kind: Kind | None, values: Float64) -> list[Any]:
    if kind is Kind.BOOLEAN:
        return [one != 0.0 for one in values.tolist()]
    if kind is Kind.TIMESTAMP:
        return [_EPOCH + timedelta(microseconds=one) for one in values.tolist()]
    return list(values.tolist())
