"""The Spark session of a command: there while the command runs, and quiet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from stentor.pipeline.spark.sessions import session

#: Writes a stack trace for each stream that fails; a command says it in a sentence.
_LOUD: Final = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"


@contextmanager
def command_session(
    master: str | None = None,
    *,
    name: str,
    quick: bool = False,
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A session as `session` makes it, stopped at the end; one that was there before goes on."""
    is_guest = SparkContext._active_spark_context is not None
    spark = session(master, name=name, quick=quick, settings=settings)
    if is_guest:
        yield spark
        return
    _silence(spark)
    try:
        yield spark
    finally:
        spark.stop()


def _silence(spark: SparkSession) -> None:
    logging = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    logging.core.config.Configurator.setLevel(_LOUD, logging.Level.OFF)
