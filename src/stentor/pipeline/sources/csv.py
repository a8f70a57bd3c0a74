"""Files of CSV: the first line of each says what its cells are called, the schema of which kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from stentor.errors import SettingsError
from stentor.model import Kind
from stentor.pipeline.sources import SourceSettings
from stentor.pipeline.sources.base import FileSource, TextSource, taken
from stentor.pipeline.sources.text_records import TextFormat
from stentor.wire.csv import Dialect, kind_of_cells
from stentor.wire.files import BOM

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: A line of CSV as Spark takes it apart: its first cell, and all of it where it has several.
_FIRST, _LINE = "_stentor_first", "_stentor_line"
_OPTIONS: Final = {
    "header": "false",
    "multiLine": "true",
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _LINE,
}
_NO_HEADER: Final = "every file of CSV has a header, by which its columns are known; write one"


class Csv(FileSource, TextSource):
    """CSV in files."""

    word = "csv"
    title: ClassVar[str] = "CSV"
    suffixes = (".csv",)

    def texts(self, spark: SparkSession, settings: SourceSettings, *, streaming: bool) -> DataFrame:
        """Each line of a file, its header among them: files may differ in it.

        Spark says where a line with quoted breaks ends. With one cell expected, it keeps the text
        of a line that has more; and a file of lines with breaks is never read by several tasks, so
        that each meets the header first.
        """
        from pyspark.sql import functions as F  # noqa: N812
        from pyspark.sql import types as T  # noqa: N812

        from stentor.pipeline.sources.columns import Origin
        from stentor.pipeline.sources.readers import file_reader, load

        if any(self.option_mistakes(settings.options)):
            raise SettingsError(f"{settings.name}: {_NO_HEADER}")
        schema = T.StructType([T.StructField(name, T.StringType()) for name in (_FIRST, _LINE)])
        # Quotes as RFC 4180 has them.
        reader = file_reader(spark, settings, streaming=streaming, escape='"').schema(schema)
        for name, value in _OPTIONS.items():
            reader = reader.option(name, value)
        df = load(reader, "csv", settings)
        dialect = Dialect.of(settings.options)
        quote, escape, single = dialect.quote or "", dialect.escape, F.col(_FIRST)
        if quote and escape != quote:
            single = F.replace(single, F.lit(escape), F.lit(escape * 2))
        if quote:
            single = F.replace(single, F.lit(quote), F.lit(escape + quote))
        single = F.concat(F.lit(quote), single, F.lit(quote))
        return df.select(
            F.coalesce(F.col(_LINE), single).alias(Origin.RAW),
            F.col("_metadata.file_path").alias(Origin.SOURCE),
        )

    def text_format(self, settings: SourceSettings) -> TextFormat:
        """How its lines are taken apart."""
        return TextFormat(
            settings.kind, settings.columns, Dialect.of(settings.options), settings.attributes
        )

    def option_mistakes(self, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """That there would be no header."""
        for name, value in options.items():  # for Spark upper and lower case are the same
            if name.lower() == "header" and value.lower() != "true":
                yield f"options, {name}", _NO_HEADER

    def kinds_of_texts(
        self, settings: SourceSettings, texts: list[tuple[str, bytes]]
    ) -> dict[str, str]:
        """What all cells of a column can be read as, in the first lines."""
        dialect = Dialect.of(settings.options)
        headers: dict[str, list[str]] = {}
        cells: dict[str, list[str]] = {}
        for file, text in texts:
            line = dialect.cells(text.removeprefix(BOM).decode("utf-8", "replace"))
            if file not in headers:
                headers[file] = [name.strip() for name in line]
                continue
            for name, cell in zip(headers[file], line, strict=False):
                if cell not in ("", dialect.null):
                    cells.setdefault(name, []).append(cell)
        left_out = taken(settings)
        kinds = {name: str(kind_of_cells(own)) for name, own in cells.items()}
        for name, columns in settings.attributes.sources:
            given = [kinds.pop(one, None) for one in columns]
            if None not in given:
                kinds[name] = str(given[0] if len(given) == 1 else Kind.POINT)
        return {name: kind for name, kind in kinds.items() if name not in left_out}
