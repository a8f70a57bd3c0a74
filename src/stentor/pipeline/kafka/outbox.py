"""Deliveries handed on to elsewhere, at least once: a marker says which batch was the last.

A batch's deliveries are handed on after it is committed, and the marker follows when they have
arrived; a crash between the two hands a batch on twice. Only the writer of a pipeline does this,
once its tables are what the manifests say: nobody else may know a batch before it is committed,
nor send at the same time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from stentor.errors import FolderError
from stentor.index.folders import sync
from stentor.pipeline.commit.manifests import Commits, Manifest
from stentor.pipeline.commit.new_files import PARTIAL, explaining
from stentor.pipeline.stream.progress import BatchProgress
from stentor.pipeline.tables import read
from stentor.pipeline.tables.files import table_folder


class Outbox:
    """Hands what a pipeline has committed to *send*: `send_waiting` first, then batch by batch."""

    def __init__(
        self, spark: SparkSession, path: str | Path, name: str, send: Callable[[DataFrame], None]
    ) -> None:
        """The outbox of the pipeline *path* that is called *name*; nothing is sent yet.

        *send* returns when the rows of the table of deliveries that it gets have arrived.
        """
        self._spark = spark
        self._path = Path(path).resolve()
        self._commits = Commits(self._path)
        self._send = send
        self._marker = self._path / "sent" / f"{name}.batch"

    def __call__(self, progress: BatchProgress) -> None:
        """Send the deliveries of a batch that was just committed."""
        self.send_waiting()

    def send_waiting(self) -> None:
        """Send what is committed and not sent yet.

        Only for who holds the folder, and after its tables were rolled forward.
        """
        last = self._commits.last()
        sent = self._read_marker()
        committed = -1 if last is None else last.batch
        if sent > committed:
            raise FolderError(
                f"{self._marker} says that batch {sent} was sent, but the last one of {self._path} "
                f"is {committed}, so the folder is older than what was sent; write the last batch "
                "that is right into the file, or remove it to send all deliveries again"
            )
        if sent == committed:
            return
        rows = self._rows(sent, list(self._commits.since(sent)))
        if rows is not None:
            self._send(rows)
        self._write_marker(committed)

    def _rows(self, sent: int, waiting: list[Manifest]) -> DataFrame | None:
        """The deliveries of the batches after *sent*, of which *waiting* are the manifests kept."""
        if waiting[0].batch == sent + 1:
            folder = table_folder(self._path, "deliveries")
            names = [one.name for each in waiting for one in each.files.get("deliveries", ())]
            if not names:
                return None
            files = [folder / name for name in names]
            if all(file.exists() for file in files):
                return self._spark.read.parquet(*map(_uri, files))
        # Manifests are gone, or files merged into larger ones: the table has all of their rows.
        return read(self._spark, self._path, "deliveries").where(F.col("batch") > sent)

    def _read_marker(self) -> int:
        """The last batch that was sent; -1 where none was."""
        try:
            return int(self._marker.read_text("ascii"))
        except FileNotFoundError:
            return -1
        except ValueError:
            raise FolderError(
                f"{self._marker} does not hold the number of a batch; write the last one that "
                "was sent into it, or remove it to send all deliveries again"
            ) from None

    def _write_marker(self, batch: int) -> None:
        partial = self._marker.with_name(f".{self._marker.name}{PARTIAL}")
        with explaining(self._marker):
            self._marker.parent.mkdir(exist_ok=True)
            with partial.open("w", encoding="ascii") as file:
                file.write(str(batch))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._marker)
            sync(self._marker.parent)


def _uri(file: Path) -> str:
    # Without a scheme Spark may look into HDFS; these characters it takes for a pattern.
    return "file:" + re.sub(r"([\\*?\[\]{}])", r"\\\1", file.as_posix())
