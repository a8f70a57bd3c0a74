"""What a source of records is, and what its columns are called; nothing here needs Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

What = Literal["events", "changes", "records"]
Format = Literal["json", "csv", "parquet", "delta", "kafka"]

#: After "number" or "timestamp": the kind of an attribute whose values may be ranges.
RANGE: Final = " range"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What a frame calls the fields of a record; `order` and `time` count only where named."""

    id: str = "id"
    order: str | None = None
    time: str | None = None
    until: str = "until"
    weights: str = "weights"
    op: str = "op"
    expression: str = "expression"
    at: str = "at"

    def of(self, field: str) -> str | None:
        """The column that holds *field*; None where none is named."""
        name: str | None = getattr(self, field)
        return name

    def is_named(self, field: str) -> bool:
        """Whether somebody chose the column's name, so that it must be there."""
        return self.of(field) != DEFAULT_COLUMNS.of(field)


DEFAULT_COLUMNS: Final = Columns()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One place that records come from."""

    format: Format
    kind: What
    path: str | None = None
    """Of files: a folder, or a pattern. Of Delta: the table's folder."""
    topic: str | None = None
    servers: str | None = None
    """Of Kafka: host:port, several with commas."""
    columns: Columns = DEFAULT_COLUMNS
    drop: tuple[str, ...] = ()
    """Columns of Parquet or Delta that are neither fields nor attributes."""
    max_files: int | None = None
    """Of a batch."""
    max_records: int | None = None
    """Of a batch; Kafka only."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of Spark's reader, by their own names."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"kafka:{self.topic}" if self.format == "kafka" else f"{self.format} {self.path}"
