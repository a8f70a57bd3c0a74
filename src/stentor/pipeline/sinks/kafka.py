"""Committed deliveries on to Kafka, at least once, with keys that show repeats."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from stentor._files import replace
from stentor.errors import FolderError, SettingsError
from stentor.pipeline.commit.manifests import Commits, Manifest
from stentor.pipeline.secrets import resolved
from stentor.pipeline.spark.jars import fetched_jars
from stentor.pipeline.storage.folder import StreamFolder, stream_folder
from stentor.pipeline.stream.progress import BatchProgress
from stentor.pipeline.tables import read
from stentor.pipeline.tables.files import table_folder


class Outbox:
    """Hands what a pipeline has committed to *send*: `send_waiting` first, then batch by batch."""

    def __init__(
        self,
        spark: SparkSession,
        path: str | Path | StreamFolder,
        name: str,
        send: Callable[[DataFrame], None],
    ) -> None:
        """The outbox of the pipeline *path* that is called *name*; nothing is sent yet.

        *send* returns when the rows of the table of deliveries that it gets have arrived.
        """
        self._spark = spark
        self._path = stream_folder(path)
        self._commits = Commits(self._path)
        self._send = send
        self._sent = self._path / "sent"
        self._marker = f"{name}.batch"

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
                f"{self._sent}/{self._marker} says that batch {sent} was sent, but the last one of "
                f"{self._path} is {committed}, so the folder is older than what was sent; write "
                "the last batch that is right into the file, or remove it to send all deliveries "
                "again"
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
            if all(map(folder.has, names)):
                root = re.sub(r"([\\*?\[\]{}])", r"\\\1", folder.spark_address)  # no patterns
                return self._spark.read.parquet(*(f"{root}/{name}" for name in names))
        # Manifests are gone, or files merged into larger ones: the table has all of their rows.
        return read(self._spark, self._path, "deliveries").where(F.col("batch") > sent)

    def _read_marker(self) -> int:
        """The last batch that was sent; -1 where none was."""
        try:
            if not self._sent.is_local:  # nothing is changed there: a file for each batch
                return max(self._marked(), default=-1)
            return int((self._sent.local / self._marker).read_text("ascii"))
        except FileNotFoundError:
            return -1
        except ValueError:
            raise FolderError(
                f"{self._sent}/{self._marker} does not hold the number of a batch; write the last "
                "one that was sent into it, or remove it to send all deliveries again"
            ) from None

    def _write_marker(self, batch: int) -> None:
        if self._sent.is_local:
            replace(self._sent.new(self._marker), str(batch).encode("ascii"))
            return
        old = self._marked()
        self._sent.put_if_absent(f"{self._marker}.{batch}", b"sent")
        self._sent.remove(f"{self._marker}.{one}" for one in old if one < batch)

    def _marked(self) -> list[int]:
        prefix = f"{self._marker}."
        names = (name for name in self._sent.entries() if name.startswith(prefix))
        return [int(name.removeprefix(prefix)) for name in names]


_CONNECTOR: Final = Path(__file__).with_name("kafka_connector.txt")


#: The Spark that the pinned connector is for.
_SPARK: Final = "4.2."

#: The writer's own patience, in milliseconds: a Kafka that is down is noticed within 30 seconds.
_QUICK_TO_NOTICE: Final = {
    "kafka.max.block.ms": "25000",
    "kafka.request.timeout.ms": "10000",
    "kafka.delivery.timeout.ms": "25000",
}

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
    path: str | Path | StreamFolder,
    *,
    topic: str,
    servers: str,
    options: Mapping[str, str] | None = None,
) -> Outbox:
    """What sends the deliveries of the pipeline *path* to *topic*, batch by batch.

    *options* are further ones of Spark's writer, as `kafka.security.protocol`; `${NAME}` and
    `${file:PATH}` in them are secrets of the environment or of a file.
    """
    own = {"kafka.bootstrap.servers": servers, "topic": topic}
    chosen = {**_QUICK_TO_NOTICE, **resolved(options or {}), **own}

    def send(deliveries: DataFrame) -> None:
        messages(deliveries).write.format("kafka").options(**chosen).save()

    return Outbox(spark, path, topic, send)


def messages(deliveries: DataFrame) -> DataFrame:
    """The message of each of *deliveries*: key, value (JSON) and a header `batch`.

    Attributes that deliveries tell are an object in the value.
    """
    names = ["event", "subscription", "change", "score", "seq", "time", "batch"]
    value = F.to_json(F.struct(*names), _JSON)
    if "attributes" in deliveries.columns:
        value = F.to_json(F.struct(*names, "alternative"), _JSON)
        object_end = F.concat(F.lit(',"attributes":'), F.col("attributes"), F.lit("}"))
        open_end = F.substring(value, F.lit(1), F.length(value) - F.lit(1))
        value = F.when(F.col("attributes").isNull(), value).otherwise(
            F.concat(open_end, object_end)
        )
    key = F.concat_ws("/", "event", "subscription", "change", F.col("seq").cast("string"))
    header = F.struct(
        F.lit("batch").alias("key"), F.col("batch").cast("string").cast("binary").alias("value")
    )
    return deliveries.select(
        key.alias("key"),
        value.alias("value"),
        F.array(header).alias("headers"),
    )
