"""Committed deliveries on to Kafka, at least once, with keys that show repeats."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from stentor._files import explain_os_errors, replace
from stentor.errors import FolderError, SettingsError
from stentor.index.storage.folders import local_folder
from stentor.pipeline.commit.manifests import Commits, Manifest
from stentor.pipeline.secrets import resolved
from stentor.pipeline.spark.jars import fetched_jars
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
        self._path = local_folder(path, "path").resolve()
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
        with explain_os_errors(self._marker):
            self._marker.parent.mkdir(exist_ok=True)
            replace(self._marker, str(batch).encode("ascii"))


def _uri(file: Path) -> str:
    # Without a scheme Spark may look into HDFS; these characters it takes for a pattern.
    return "file:" + re.sub(r"([\\*?\[\]{}])", r"\\\1", file.as_posix())


_CONNECTOR: Final = Path(__file__).with_name("kafka_connector.txt")


#: The Spark that the pinned connector is for.
_SPARK: Final = "4.2."

_JSON: Final = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}


def connector_jars() -> list[str]:
    """The jars of Spark's connector for Kafka, fetched once (10 MB) and checked by their sums.

    For `session(settings={"spark.jars": ",".join(connector_jars())})`: Spark takes jars only when
    a session begins.
    """
    if not pyspark.__version__.startswith(_SPARK):
        raise SettingsError(
            f"the pinned connector is for Spark {_SPARK}x, this is {pyspark.__version__}; name the "
            "right one yourself, for example spark.jars.packages = "
            f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
        )
    return [str(jar) for jar in fetched_jars(_CONNECTOR)]


def deliveries_to_kafka(
    spark: SparkSession,
    path: str | Path,
    *,
    topic: str,
    servers: str,
    options: Mapping[str, str] | None = None,
) -> Outbox:
    """What sends the deliveries of the pipeline *path* to *topic*, batch by batch.

    *options* are further ones of Spark's writer, as `kafka.security.protocol`; `${NAME}` and
    `${file:PATH}` in them are secrets of the environment or of a file.
    """
    chosen = {**resolved(options or {}), "kafka.bootstrap.servers": servers, "topic": topic}

    def send(deliveries: DataFrame) -> None:
        messages(deliveries).write.format("kafka").options(**chosen).save()

    return Outbox(spark, path, topic, send)


def messages(deliveries: DataFrame) -> DataFrame:
    """The message of each of *deliveries*: key, value (JSON) and a header `batch`."""
    names = ("event", "subscription", "change", "score", "seq", "time", "batch")
    key = F.concat_ws("/", "event", "subscription", "change", F.col("seq").cast("string"))
    header = F.struct(
        F.lit("batch").alias("key"), F.col("batch").cast("string").cast("binary").alias("value")
    )
    return deliveries.select(
        key.alias("key"),
        F.to_json(F.struct(*names), _JSON).alias("value"),
        F.array(header).alias("headers"),
    )
