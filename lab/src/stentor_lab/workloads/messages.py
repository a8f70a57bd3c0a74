"""Messages: a few words and a place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from stentor.encoding.columns import EventColumns, Float64, Int64, UInt8
from stentor.encoding.events import EventTimes, encode_attribute_columns
from stentor.model import Schema
from stentor_lab.workloads.conjunctions import at_once, numbers, points, texts
from stentor_lab.workloads.distributions import WORD_BYTES, word_bytes

KINDS: Final = {"text": "string", "loc": "point"}
MESSAGE_TERMS: Final = 9


@dataclass(frozen=True)
class Messages:
    """Drawn messages, in three forms that mean the same."""

    codes: Int64  # (messages, MESSAGE_TERMS)
    x: Float64  # (messages,)
    y: Float64  # (messages,)

    def __len__(self) -> int:
        return len(self.x)

    def columns(self, times: EventTimes | None = None) -> EventColumns:
        """What `encode_events` gives for `records()`; with *times*, each comes and ends in time."""
        attributes = [texts("text", _joined(self.codes)), numbers("loc", self.x, self.y)]
        return encode_attribute_columns(
            attributes, times or at_once(len(self)), Schema.declare(KINDS)
        )

    def records(self) -> Iterator[dict[str, Any]]:
        """Each message as a dict, as JSON would have it."""
        for row, (text, x, y) in enumerate(
            zip(self._texts(), self.x.tolist(), self.y.tolist(), strict=True)
        ):
            yield {"id": f"m{row}", "text": text, "loc": [x, y]}

    def table(self) -> pa.Table:
        """The messages as an Arrow table."""
        ids = [f"m{row}" for row in range(len(self))]
        return pa.table({"id": ids, "text": list(self._texts()), "loc": points(self.x, self.y)})

    def _texts(self) -> Iterator[str]:
        for row in _joined(self.codes):
            yield row.tobytes().decode("ascii")


def _joined(codes: Int64) -> UInt8:
    """The words of each row of *codes*, joined by spaces: (rows, bytes)."""
    letters = word_bytes(codes)
    spaces = np.full((*codes.shape, 1), ord(" "), np.uint8)
    rows = np.concatenate((letters, spaces), axis=2)
    return rows.reshape(len(codes), (WORD_BYTES + 1) * codes.shape[1])[:, :-1].copy()
