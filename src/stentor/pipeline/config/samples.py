"""What the first records of a source would come to, looked at without Spark: for `--check`.

Files on a disk of this machine are read by the readers that the workers use; of a
topic the servers say whether it exists.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from stentor.errors import StentorError
from stentor.model import Schema
from stentor.model.record import EVENT_OPS, Publish
from stentor.pipeline.config.file import StreamConfig
from stentor.pipeline.sources import RANGE, SourceSettings, source_named
from stentor.wire.files import stripped

if TYPE_CHECKING:
    from stentor.pipeline.sources import TextFile

#: So many records of a source are looked at.
SAMPLE: Final = 1_000
#: Options of Spark's reader that are understood here, or change nothing about records; with others
#: nobody but Spark knows what is read.
_READ_HERE: Final = {
    *("sep", "delimiter", "quote", "escape", "nullvalue", "header", "encoding", "charset"),
    *("multiline", "mode", "maxfilespertrigger", "maxfileage", "latestfirst", "cleansource"),
}
#: What Hadoop's codecs make of texts, and only they read here.
_CODECS: Final = {".deflate", ".lz4", ".snappy", ".zst"}
#: A record of CSV whose quotes are open for longer has no end.
MOST_QUOTED: Final = 4_000_000
#: Fewer than this are no sign that a setting is wrong.
_LEAST: Final = 10


class Sample(NamedTuple):
    """The first records of a source: how many, how many would be rejected, and why."""

    source: SourceSettings
    records: int
    rejected: int
    reasons: list[str]

    @property
    def mistake(self) -> str | None:
        """What is wrong where too much would be rejected: then the stream would stop."""
        too_many = self.rejected > self.source.most_rejected * self.records
        return self.text if too_many and self.records >= _LEAST else None

    @property
    def text(self) -> str:
        """What there is to say."""
        count = f"{self.source.name}: of the first {self.records:,} records"
        if not self.rejected:
            return f"{count} none would be rejected"
        return f"{count} {self.rejected:,} would be rejected" + "".join(
            f"\n    {reason}" for reason in self.reasons
        )


def samples(config: StreamConfig) -> Iterator[Sample]:
    """The first records of each source of *config* whose data is here."""
    for source in config.sources:
        files = _files(source)
        try:
            found = _sample(config, source, files) if files else None
        except (OSError, UnicodeError, EOFError):
            found = None  # Spark may know better
        if found is not None:
            yield found


def topic_mistakes(config: StreamConfig) -> Iterator[str]:
    """A sentence for each topic that is not there, as far as its servers answer."""
    for source in config.sources:
        yield from source_named(source.format).remote_mistakes(source)


def _files(source: SourceSettings) -> list[Path]:
    """The files of *source* on this machine, oldest first."""
    if not {name.lower() for name in source.options} <= _READ_HERE:
        return []
    found = source_named(source.format).local_files(source)
    return [] if any(one.suffix in _CODECS for one in found) else found


def _sample(config: StreamConfig, source: SourceSettings, files: list[Path]) -> Sample:
    if source_named(source.format).has_schema:
        return _parquet_sample(config, source, files)
    texts = list(islice(_texts(source, files), SAMPLE + 1))
    schema = config.schema or _learned(source, texts)
    return _text_sample(config, source, schema, texts)


def _lines(source: SourceSettings, file: Path) -> Iterator[bytes]:
    """The lines of *file* in UTF-8, whatever encoding the options of *source* name."""
    of: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(file.suffix, Path.open)
    given = {name.lower(): value for name, value in source.options.items()}
    encoding = given.get("encoding", given.get("charset"))
    if encoding is None:
        with of(file, "rb") as stream:
            yield from stream
        return
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise UnicodeError(str(error)) from None  # Java may know it
    with of(file, "rt", encoding=encoding, errors="replace", newline="\n") as texts:
        yield from (line.encode() for line in texts)


def _texts(source: SourceSettings, files: list[Path]) -> Iterator[tuple[str, bytes]]:
    """The texts of records in *files*, each with its file."""
    dialect = _text_file(source).text_format(source).dialect
    for file in files:
        record, is_quoted = b"", False
        for line in _lines(source, file):
            record += line
            if dialect is not None:  # a break between quotes ends no record
                is_quoted ^= dialect.opens(line.decode("utf-8", "replace"))
            if not is_quoted or len(record) > MOST_QUOTED:
                if record.strip() if dialect is not None else stripped(record):
                    yield str(file), record.rstrip(b"\n" if dialect is None else b"\r\n")
                record, is_quoted = b"", False


def _learned(source: SourceSettings, texts: list[tuple[str, bytes]]) -> Schema:
    """What the first lines teach, as when a stream begins without a declared schema."""
    kinds = _text_file(source).kinds_of_texts(source, texts)
    return Schema.declare({name: kind.removesuffix(RANGE) for name, kind in kinds.items()})


def _text_file(source: SourceSettings) -> TextFile:
    return cast("TextFile", source_named(source.format))


def _text_sample(
    config: StreamConfig, source: SourceSettings, schema: Schema, texts: list[tuple[str, bytes]]
) -> Sample:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from stentor.encoding.texts import TextEncoder
    from stentor.model.values.time import BEGINNING
    from stentor.pipeline.sources.text_records import TextReader
    from stentor.pipeline.stream.read_records import ProcessReader, read_changes

    limits = config.settings.limits
    bad: list[str] = []
    reader = TextReader(_text_file(source).text_format(source), schema, limits)
    table, _ = reader.read(
        pa.array([text for _, text in texts], pa.binary()),
        [file for file, _ in texts],
        lambda row, reason, raw: bad.append(reason),
    )
    records = table.num_rows + len(bad)
    changes = table.filter(pc.invert(pc.is_in(table["op"], pa.array(EVENT_OPS))))
    readers = ProcessReader(schema, TextEncoder(schema, limits.expression))
    order = np.zeros(changes.num_rows, np.int64)
    _, _, errors = read_changes(changes, order, readers, BEGINNING, limits)
    return _sample_of(source, records, [*bad, *errors.values()])


def _parquet_sample(config: StreamConfig, source: SourceSettings, files: list[Path]) -> Sample:
    """The first rows of the first files, as the wire reads tables."""
    import pyarrow.parquet as pq

    from stentor.pipeline.sources.text_records import ALLOWED
    from stentor.wire.formats import ReadSettings
    from stentor.wire.rejected import Rejected
    from stentor.wire.tables import records_from_table

    bad: list[str] = []
    records = 0
    schema = config.schema or Schema()
    names = {
        name: one
        for one in type(source.columns).__slots__
        if (name := source.columns.of(one)) is not None
    }
    settings = ReadSettings(default_op=ALLOWED[source.kind][1], limits=config.settings.limits)
    for file in files:
        if records >= SAMPLE:
            break
        try:
            batches: Any = pq.ParquetFile(file).iter_batches(SAMPLE - records)
            table = next(iter(batches), None)
        except (OSError, ValueError) as error:
            bad.append(f"{file}: the file cannot be read: {error}")
            records += 1
            continue
        if table is None:
            continue
        hidden = {one for name, one in names.items() if name != one} | {*source.drop, "order"}
        kept = [name for name in table.schema.names if name in names or name not in hidden]
        own = table.select(kept)
        renamed = {name: names.get(name, name) for name in kept}
        own = own.rename_columns([renamed[name] for name in kept])
        order = source.columns.order
        if order in kept:
            own = own.drop_columns(["order"])
        elif order is not None:
            missing = f"{order}: every record needs one, because it says the order"
            bad += [missing] * table.num_rows
            records += table.num_rows
            continue
        records += table.num_rows
        try:
            for one in records_from_table(own, schema, settings):
                if isinstance(one, Rejected):
                    bad.append(one.reason)
                elif source.kind == "changes" and isinstance(one, Publish):
                    bad.append("op: expected a change of a subscription, got 'publish'")
        except StentorError as error:
            bad += [str(error)] * table.num_rows
    return _sample_of(source, records, bad)


def _sample_of(source: SourceSettings, records: int, bad: list[str]) -> Sample:
    counts = Counter(bad)
    reasons = [f"{count:,} because: {reason}" for reason, count in counts.most_common(3)]
    return Sample(source, records, len(bad), reasons)
