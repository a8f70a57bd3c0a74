"""Files of JSON lines: a line, read by the engine's own reader, is a record or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from stentor.model import Range, Schema
from stentor.model.record import Publish
from stentor.pipeline.sources import RANGE, SourceSettings
from stentor.pipeline.sources.base import FileSource, TextSource, taken
from stentor.pipeline.sources.text_records import ALLOWED
from stentor.wire.files import Line, records_of_line, stripped
from stentor.wire.formats import ReadSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class JsonLines(FileSource, TextSource):
    """JSON lines in files."""

    word = "json"
    title: ClassVar[str] = "JSON lines"
    suffixes = (".json", ".jsonl", ".ndjson")
    appended = "files"

    def texts(self, spark: SparkSession, settings: SourceSettings, *, streaming: bool) -> DataFrame:
        """The lines of the files."""
        from pyspark.sql import functions as F  # noqa: N812

        from stentor.pipeline.sources.columns import Origin
        from stentor.pipeline.sources.readers import file_reader, load

        reader = file_reader(spark, settings, streaming=streaming)
        if "lineSep" not in settings.options:
            reader = reader.option("lineSep", "\n")  # a carriage return alone ends no line
        df = load(reader, "text", settings)
        return df.select(
            F.col("value").alias(Origin.RAW), F.col("_metadata.file_path").alias(Origin.SOURCE)
        )

    def kinds_of_texts(
        self, settings: SourceSettings, texts: list[tuple[str, bytes]]
    ) -> dict[str, str]:
        """What `stentor.wire` learns of the first lines; bad ones teach nothing."""
        reading = ReadSettings(default_op=ALLOWED[settings.kind][1], columns=settings.attributes)
        schema, ranges = Schema(), set()
        for _, text in texts:
            data = stripped(text)
            found = records_of_line(Line(1, 0, 0, data, True), schema, reading) if data else ()
            for record in found:
                if isinstance(record, Publish):
                    values = record.event.attributes.items()
                    ranges |= {name for name, value in values if isinstance(value, Range)}
        left_out = taken(settings)
        return {
            name: f"{kind}{RANGE if name in ranges else ''}"
            for name in schema
            if (kind := schema.kind(name)) is not None and name not in left_out
        }
