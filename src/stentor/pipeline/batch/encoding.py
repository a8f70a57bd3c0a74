"""Worker's side: rows of subscriptions → encoded parts in files, one for each shard."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from stentor.encoding.collected import Asked
from stentor.encoding.texts import TextEncoder
from stentor.engine.names import StringArrays
from stentor.model import Schema
from stentor.model.time import NEVER
from stentor.pipeline.batch.parts import Part, joined, write_part
from stentor.pipeline.batch.rejects import Rejects, id_in
from stentor.pipeline.snapshots import shard_of
from stentor.wire.cells.layout import reasons_by_row
from stentor.wire.cells.strings import string_array
from stentor.wire.cells.times import filled
from stentor.wire.frames import take_rows
from stentor.wire.limits import RecordLimits
from stentor.wire.table_fields import positions_of, read_fields

#: What a task tells of each part that it wrote, and once of the rows that it could not use.
ENCODED: Final = "shard int, part string, sum string, rejected long, told array<string>"
_ENCODED_ARROW: Final = pa.schema(
    [
        ("shard", pa.int32()),
        ("part", pa.string()),
        ("sum", pa.string()),
        ("rejected", pa.int64()),
        ("told", pa.list_(pa.string())),
    ]
)
#: Subscriptions that a task holds before it writes them.
MOST_HELD: Final = 250_000


@dataclass(frozen=True, slots=True)
class EncodeSubscriptions:
    """For `mapInArrow`: the columns id, expression, at, until → `ENCODED`."""

    schema: dict[str, Any]
    folder: str
    shards: int
    limits: RecordLimits

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = Schema.from_dict(self.schema)
        encoder = TextEncoder(schema, self.limits.expression)
        held: list[Part] = []
        rejects = Rejects()
        for batch in batches:
            table = pa.Table.from_batches([batch])
            part, bad = encode_table(table, schema, encoder, self.limits)
            held.append(part)
            rejects += bad
            if sum(map(_count, held)) >= MOST_HELD:
                yield from self._written(joined(held))
                held = []
        yield from self._written(joined(held))
        if rejects.count:
            yield _row(part=None, rejected=rejects.count, told=rejects.told)

    def _written(self, part: Part) -> Iterator[pa.RecordBatch]:
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        shard = shard_of(part.ids, self.shards)
        for number in np.unique(shard).tolist():
            own = part if self.shards == 1 else part.rows(np.flatnonzero(shard == number))
            name = f"{secrets.token_hex(8)}.part"
            yield _row(shard=number, part=name, sum=write_part(Path(self.folder, name), own))


def encode_table(
    table: pa.Table, schema: Schema, encoder: TextEncoder, limits: RecordLimits
) -> tuple[Part, Rejects]:
    """The subscriptions of *table* that can be used, and why the others cannot."""
    kinds = Schema(plane=schema.plane)  # none: an attribute may be called `expression`
    fields = read_fields(table, kinds, limits, others=("expression", "at"))
    reasons = reasons_by_row(fields.problems)
    rejects = Rejects.of((id_in(table, row), reason) for row, reason in reasons.items())
    if reasons:
        table = take_rows(table, np.delete(np.arange(table.num_rows), list(reasons)))
        fields = read_fields(table, kinds, limits, others=("expression", "at"))
    ids, texts = string_array(fields.ids), string_array(fields.others["expression"])
    asked = Asked(
        ids.to_pylist(),
        positions_of(fields.others.get("at"), table.num_rows),
        filled(fields.until, NEVER),
    )
    encoded = encoder.encode(texts.to_pylist(), asked)
    rejects += Rejects.of((asked.ids[row], str(error)) for row, error in encoded.errors.items())
    names, expressions = (StringArrays.of(one.take(pa.array(encoded.rows))) for one in (ids, texts))
    return Part(encoded.columns, names, expressions), rejects


def _count(part: Part) -> int:
    return len(part.columns.until)


def _row(**cells: Any) -> pa.RecordBatch:
    row = {"shard": 0, "rejected": 0, "told": (), **cells}
    return pa.RecordBatch.from_pylist([row], schema=_ENCODED_ARROW)
