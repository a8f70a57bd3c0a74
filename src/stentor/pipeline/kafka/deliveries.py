"""Deliveries on to Kafka, and the jars that Spark needs to speak with it.

Out: at least once (`Outbox`). What a crash has had sent twice has equal keys,
`event/subscription/change/seq`, by which a consumer can tell.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from stentor.errors import SettingsError
from stentor.pipeline.kafka.jars import fetched_jars
from stentor.pipeline.kafka.outbox import Outbox

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
    spark: SparkSession, path: str | Path, *, topic: str, servers: str
) -> Outbox:
    """What sends the deliveries of the pipeline *path* to *topic*, batch by batch."""
    options = {"kafka.bootstrap.servers": servers, "topic": topic}

    def send(deliveries: DataFrame) -> None:
        messages(deliveries).write.format("kafka").options(**options).save()

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
