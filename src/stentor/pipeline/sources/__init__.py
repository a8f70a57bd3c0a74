"""Where records come from: one file for each kind of source, found by its word in `stentor.toml`.

A new source is a file with a class that fulfils `Source`, and a line in `SOURCES`. Nothing here
needs Spark: what does, imports it when it is called.

    json_lines.py, csv.py, kafka.py ──texts──▶ Frame ──▶ TextReader, in the workers
    parquet.py, delta.py ───────────columns──▶ Frame

Each row carries where it came from: its file, or `kafka:topic/partition`, and its offset there (of
Parquet the row's number, of Kafka the message's offset).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Protocol

from stentor.errors import SettingsError
from stentor.wire.mapping import NO_MAPPING, ColumnMapping

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stentor.pipeline.sources.frames import Frame
    from stentor.pipeline.sources.text_records import TextFormat

What = Literal["events", "changes", "records"]

#: After "number" or "timestamp": the kind of an attribute whose values may be ranges.
RANGE: Final = " range"
#: The fields that a frame may have as columns of their own; every other column is an attribute.
FIELDS: Final[dict[What, tuple[str, ...]]] = {
    "events": ("op", "id", "order", "time", "until", "weights"),
    "changes": ("op", "id", "order", "time", "until", "expression", "at"),
    "records": ("op", "id", "order", "time", "until", "weights", "expression", "at"),
}
#: The keys of which each source has some only.
KEYS: Final = ("path", "topic", "servers", "max_files", "max_records", "drop")


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
class SourceSettings:
    """One source of records: where they are, and how they are read."""

    format: str
    """One of `SOURCES`."""
    kind: What
    path: str | None = None
    """Of files: a folder, or a pattern. Of Delta: the table's folder."""
    topic: str | None = None
    servers: str | None = None
    """Of Kafka: host:port, several with commas."""
    columns: Columns = DEFAULT_COLUMNS
    attributes: ColumnMapping = NO_MAPPING
    """What attributes are made of, where the columns are called otherwise."""
    drop: tuple[str, ...] = ()
    """Columns of Parquet or Delta that are neither fields nor attributes."""
    max_files: int | None = None
    """Of a batch."""
    max_records: int | None = None
    """Of a batch; Kafka only."""
    most_rejected: float = 0.5
    """The share of its first records that may be rejected; more, and the stream stops."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of Spark's reader, by their own names; `${NAME}` and `${file:PATH}` in them
    are secrets of the environment or of a file."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return source_named(self.format).called(self)


class Source(Protocol):
    """A kind of source: what its settings are, and how its records are opened."""

    title: ClassVar[str]
    """What `explain` calls it."""
    keys: ClassVar[frozenset[str]]
    """Those of `KEYS` that it has."""
    required: ClassVar[Mapping[str, str]]
    """Those that it needs, and what is expected there."""
    suffixes: ClassVar[tuple[str, ...]]
    """Of the files that `match --spark` recognises."""
    jars: ClassVar[tuple[str, ...]]
    """The connectors that a session needs."""
    has_schema: ClassVar[bool]
    """Whether its columns say of which kinds they are."""
    is_looked_into: ClassVar[bool]
    """Whether kinds that nobody declared can be inferred from what is there."""
    has_lanes: ClassVar[bool]
    """Whether it has parts that come as far as they like, each for itself."""
    appended: ClassVar[Literal["files", "messages", ""]]
    """As what a server adds lines of JSON to it; "" where it cannot."""

    def called(self, settings: SourceSettings) -> str:
        """What messages call a source of these *settings*."""
        ...

    def where(self, settings: SourceSettings) -> str:
        """Where its records are, for `explain`."""
        ...

    def option_mistakes(self, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Keys and sentences about *options* of Spark's reader that it cannot be used with."""
        ...

    def mistakes(self, settings: SourceSettings, *, is_inferred: bool) -> Iterator[str]:
        """What would keep it from being read, and can be seen before anything runs."""
        ...

    def remote_mistakes(self, settings: SourceSettings) -> Iterator[str]:
        """The same, as far as its servers answer."""
        ...

    def local_files(self, settings: SourceSettings) -> list[Path]:
        """Its files on this machine whose first records can be looked at, oldest first."""
        ...

    def open(
        self,
        spark: SparkSession,
        settings: SourceSettings,
        kinds: Mapping[str, str] | None,
        *,
        streaming: bool,
    ) -> Frame:
        """Its records as a frame; a stream, or what is there now."""
        ...

    def kinds(self, spark: SparkSession, settings: SourceSettings) -> dict[str, str]:
        """The kinds of its attributes, from the first records that are there."""
        ...

    def explain_failure(self, text: str) -> SettingsError | None:
        """What a user should know where Spark's *text* says that such a source failed."""
        ...


class TextFile(Protocol):
    """What else a source of files of texts can do: its first lines are read without Spark."""

    def text_format(self, settings: SourceSettings) -> TextFormat:
        """How the workers read its texts."""
        ...

    def kinds_of_texts(
        self, settings: SourceSettings, texts: list[tuple[str, bytes]]
    ) -> dict[str, str]:
        """What the first texts, each with its file, say of the kinds of attributes."""
        ...


#: Each word for a source, and its class.
SOURCES: Final[dict[str, str]] = {
    "json": "json_lines:JsonLines",
    "csv": "csv:Csv",
    "parquet": "parquet:Parquet",
    "delta": "delta:Delta",
    "kafka": "kafka:Kafka",
}


@cache
def source_named(word: str) -> Source:
    """The source called *word*; a SettingsError where there is none."""
    if word not in SOURCES:
        raise SettingsError(f"no source {word!r}; expected one of {', '.join(SOURCES)}")
    module, name = SOURCES[word].split(":")
    found: Source = getattr(import_module(f"{__name__}.{module}"), name)()
    return found


def open_source(
    spark: SparkSession,
    settings: SourceSettings,
    kinds: Mapping[str, str] | None = None,
    *,
    streaming: bool = True,
) -> Frame:
    """The records of a source as a frame; a stream, or what is there now.

    *kinds* are those of the attributes ("number", …, "number range"). Without them they are
    inferred from the records that are there: once, by the driver.
    """
    return source_named(settings.format).open(spark, settings, kinds, streaming=streaming)


def explained(error: BaseException) -> SettingsError | None:
    """What a user should know where *error*, Spark's, says that a source failed."""
    found = (source_named(word).explain_failure(str(error)) for word in SOURCES)
    return next((one for one in found if one is not None), None)
