"""Deliveries on to Kafka, and the jars that Spark needs to speak with it.

Out: at least once. A batch's deliveries are sent after it is committed; which was the last one is
kept in the pipeline's folder, so that after a crash the next start sends what was not. A crash
between the two sends a batch twice, with equal keys: `event/subscription/change/seq`, by which a
consumer can tell.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from stentor.errors import FolderError, SettingsError
from stentor.pipeline.commit.manifests import Commits, Manifest
from stentor.pipeline.commit.new_files import PARTIAL, explaining
from stentor.pipeline.kafka.jars import fetched_jars
from stentor.pipeline.stream.progress import BatchProgress
from stentor.pipeline.tables import read
from stentor.pipeline.tables.files import table_folder

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


class DeliveriesToKafka:
    """A listener of a stream that sends each committed batch's deliveries to a topic."""

    def __init__(self, spark: SparkSession, path: str | Path, *, topic: str, servers: str) -> None:
        """Send what the pipeline *path* has committed and not sent yet, now and batch by batch."""
        self._spark = spark
        self._path = Path(path).resolve()
        self._options = {"kafka.bootstrap.servers": servers, "topic": topic}
        self._marker = self._path / "sent" / f"{topic}.batch"
        self._sent = self._read_marker()
        self._send_waiting()

    def __call__(self, progress: BatchProgress) -> None:
        """Send the deliveries of a batch that was just committed."""
        self._send_waiting()

    def _send_waiting(self) -> None:
        waiting = list(Commits(self._path).since(self._sent))
        if not waiting:
            return
        last = waiting[-1].batch
        rows = self._rows(waiting)
        if rows is not None:
            messages(rows).write.format("kafka").options(**self._options).save()
            self._write_marker(last)
        self._sent = last

    def _rows(self, waiting: list[Manifest]) -> DataFrame | None:
        """The deliveries of the batches of *waiting*, all that follow the last one sent."""
        if waiting[0].batch != self._sent + 1:  # older manifests are gone, their rows are not
            return read(self._spark, self._path, "deliveries").where(F.col("batch") > self._sent)
        folder = table_folder(self._path, "deliveries")
        files = [folder / one.name for each in waiting for one in each.files.get("deliveries", ())]
        if not files:
            return None
        if not all(file.exists() for file in files):  # merged into larger ones since
            return read(self._spark, self._path, "deliveries").where(F.col("batch") > self._sent)
        return self._spark.read.parquet(*map(_uri, files))

    def _read_marker(self) -> int:
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
        with explaining(self._marker):
            self._marker.parent.mkdir(exist_ok=True)
            partial = self._marker.with_name(f".{secrets.token_hex(8)}{PARTIAL}")
            with partial.open("x", encoding="ascii") as file:
                file.write(str(batch))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._marker)


def _uri(file: Path) -> str:
    # Without a scheme Spark may look into HDFS; these characters it takes for a pattern.
    return "file:" + re.sub(r"([\\*?\[\]{}])", r"\\\1", file.as_posix())


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
