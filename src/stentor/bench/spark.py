"""Stentor in Spark: events a second, what it adds to the engine, workers, micro-batches, joins."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from stentor.bench.result import BenchOptions, Table
from stentor.bench.spark_engine import beside_the_engine
from stentor.bench.spark_events import Offers, without_subscriptions
from stentor.bench.spark_latency import micro_batches
from stentor.bench.spark_messages import Messages
from stentor.bench.spark_scale import Bench, Sessions
from stentor.bench.spark_sql import against_joins
from stentor.bench.spark_worker import opening
from stentor.errors import SettingsError


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """All figures of the pipeline; *size* is the subscriptions of the largest table."""
    _need_spark()
    from stentor.pipeline.spark.failures import in_sentences

    sessions = Sessions()
    with TemporaryDirectory(prefix="stentor-bench-") as folder, in_sentences():
        bench = Bench(options, Path(folder), sessions)
        messages = Messages(bench)
        try:
            offers = Offers.drawn(bench)
            return (
                without_subscriptions(bench, offers),
                *beside_the_engine(bench, offers),
                opening(bench, messages),
                micro_batches(bench, messages),
                against_joins(bench, messages),
            )
        finally:
            sessions.stop()


def _need_spark() -> None:
    import stentor.pipeline

    try:
        _ = stentor.pipeline.start
    except ImportError as error:
        raise SettingsError(str(error)) from None
