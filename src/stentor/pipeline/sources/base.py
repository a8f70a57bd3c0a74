"""Base classes of sources: those of files, and those of texts.

Of texts Spark gives the bytes, and the workers read them (`TextReader`).
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from stentor.errors import SettingsError
from stentor.index.storage.folders import has_scheme
from stentor.pipeline.sources import FIELDS, Columns, SourceSettings
from stentor.pipeline.sources.text_records import TextFormat
from stentor.wire.events import RESERVED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from stentor.pipeline.sources.frames import Frame

_PATTERN: Final = re.compile(r"[*?\[{]")
#: How many lines the kinds are inferred from.
SAMPLE: Final = 1_000


class FileSource:
    """Files in a folder, or of a pattern."""

    word: ClassVar[str]
    keys: ClassVar[frozenset[str]] = frozenset({"path", "max_files"})
    required: ClassVar[Mapping[str, str]] = {"path": "a folder or a pattern"}
    suffixes: ClassVar[tuple[str, ...]] = ()
    jars: ClassVar[tuple[str, ...]] = ()
    has_schema: ClassVar[bool] = False
    is_looked_into: ClassVar[bool] = True
    has_lanes: ClassVar[bool] = False
    appended: ClassVar[Literal["files", "messages", ""]] = ""

    def called(self, settings: SourceSettings) -> str:
        """What messages call a source of these *settings*."""
        return f"{self.word} {settings.path}"

    def where(self, settings: SourceSettings) -> str:
        """Where its records are."""
        return f"{settings.path}"

    def option_mistakes(self, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """None: Spark knows them."""
        yield from ()

    def mistakes(self, settings: SourceSettings, *, is_inferred: bool) -> Iterator[str]:
        """What can be seen of its path."""
        path = settings.path
        if path is None or has_scheme(path):
            return
        has_pattern = _PATTERN.search(path) is not None
        if not has_pattern and not Path(path).exists():
            yield f"{settings.name}: there is no such folder; make it, or correct the path"
        else:
            yield from self.content_mistakes(settings, path, has_pattern, is_inferred)

    def content_mistakes(
        self, settings: SourceSettings, path: str, has_pattern: bool, is_inferred: bool
    ) -> Iterator[str]:
        """What can be seen of what is in *path*."""
        if is_inferred and settings.kind != "changes" and not _has_file(path, has_pattern):
            yield (
                f"{settings.name}: there is no file yet to tell the columns from; put one there, "
                "or declare the attributes in [schema]"
            )

    def remote_mistakes(self, settings: SourceSettings) -> Iterator[str]:
        """None: there is no server."""
        yield from ()

    def local_files(self, settings: SourceSettings) -> list[Path]:
        """Its files on this machine, oldest first."""
        path = settings.path
        if path is None or has_scheme(path):
            return []
        given = Path(path)
        named = given.iterdir() if given.is_dir() else map(Path, glob.iglob(path))  # noqa: PTH207
        found = [one for one in named if one.is_file() and not one.name.startswith((".", "_"))]
        return sorted(found, key=lambda one: (one.stat().st_mtime, one.name))

    def explain_failure(self, text: str) -> SettingsError | None:
        """Nothing that Spark does not say itself."""
        return None


def _has_file(path: str, has_pattern: bool) -> bool:
    if has_pattern:
        # A Path has no glob for an absolute pattern.
        return next(glob.iglob(path), None) is not None  # noqa: PTH207
    if Path(path).is_file():
        return True
    # What Spark takes for hidden does not count.
    return any(not one.name.startswith((".", "_")) for one in Path(path).iterdir())


class TextSource:
    """A line, or a message, in each row."""

    def texts(self, spark: SparkSession, settings: SourceSettings, *, streaming: bool) -> DataFrame:
        """The texts in the column `Origin.RAW`, as bytes; and where each one was."""
        raise NotImplementedError

    def text_format(self, settings: SourceSettings) -> TextFormat:
        """How the workers read the texts."""
        return TextFormat(settings.kind, settings.columns, mapping=settings.attributes)

    def kinds_of_texts(
        self, settings: SourceSettings, texts: list[tuple[str, bytes]]
    ) -> dict[str, str]:
        """What the first texts say of the kinds of attributes."""
        raise NotImplementedError

    def open(
        self,
        spark: SparkSession,
        settings: SourceSettings,
        kinds: Mapping[str, str] | None,
        *,
        streaming: bool,
    ) -> Frame:
        """The texts as a frame; columns, where it is no stream."""
        from stentor.pipeline.sources.attribute_types import schema_of, types_of_kinds
        from stentor.pipeline.sources.columns import alike_names
        from stentor.pipeline.sources.frames import Frame
        from stentor.pipeline.sources.readers import read_texts

        types = types_of_kinds(self.kinds(spark, settings) if kinds is None else kinds)
        alike = alike_names(spark, types.names, settings.name)
        if alike:
            raise SettingsError("\n".join(alike))
        df, texts = self._given(spark, settings, streaming=streaming), self.text_format(settings)
        if streaming:
            return Frame(df, settings.kind, settings.name, settings.columns, texts, types)
        # The fields now have their own names, and what the source does not say stays open.
        columns = Columns(
            order=None if settings.columns.order is None else "order",
            time=None if settings.columns.time is None else "time",
        )
        return Frame(read_texts(df, texts, schema_of(types)), settings.kind, settings.name, columns)

    def kinds(self, spark: SparkSession, settings: SourceSettings) -> dict[str, str]:
        """The kinds of the attributes, from the first texts that are there."""
        if settings.kind == "changes":
            return {}
        kinds = self.kinds_of_texts(settings, self._sample(spark, settings))
        if not kinds:
            raise SettingsError(
                f"{settings.name}: no attribute was found in the first {SAMPLE:,} records; declare "
                "the schema, or put events there before the stream is started"
            )
        return kinds

    def _given(
        self, spark: SparkSession, settings: SourceSettings, *, streaming: bool
    ) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        from stentor.pipeline.sources.columns import Origin

        df = self.texts(spark, settings, streaming=streaming)
        return df.where(F.col(Origin.RAW).isNotNull())

    def _sample(self, spark: SparkSession, settings: SourceSettings) -> list[tuple[str, bytes]]:
        """The first texts, each with its file."""
        from stentor.pipeline.sources.columns import Origin

        texts = self._given(spark, settings, streaming=False).limit(SAMPLE).toArrow()
        raw = texts[Origin.RAW].cast("binary").to_pylist()
        return list(zip(texts[Origin.SOURCE].to_pylist(), raw, strict=True))


def taken(settings: SourceSettings) -> set[str | None]:
    """The names that are no attributes of the texts of a source."""
    return {*RESERVED, *(settings.columns.of(field) for field in FIELDS[settings.kind])}
