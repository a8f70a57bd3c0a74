"""Drawn texts of subscriptions and plain events, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stentor.encoding.columns import EventColumns, Float64, SubscriptionColumns
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.template import SubscriptionHeads
from stentor.encoding.texts import TextEncoder
from stentor.model import Schema
from stentor.model.values.time import NEVER
from stentor.wire.events import event_from_dict


def encoded(
    texts: Sequence[str], events: Sequence[Mapping[str, Any]], at: Float64 | None = None
) -> tuple[SubscriptionColumns, EventColumns]:
    """The columns of *texts*, whose subscribers are *at* (n × 2), and of plain *events*."""
    schema, count = Schema(), len(texts)
    positions = np.full((count, 2), np.nan) if at is None else at
    asked = SubscriptionHeads([str(row) for row in range(count)], positions, np.full(count, NEVER))
    columns = TextEncoder(schema).encode(texts, asked).columns
    arrivals = [
        TimedEvent(event_from_dict({"id": f"e{row}", **event}, schema))
        for row, event in enumerate(events)
    ]
    return columns, encode_events(arrivals, schema)
