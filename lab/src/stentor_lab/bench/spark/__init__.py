"""Stentor in Spark: events a second, what it adds to the engine, workers, micro-batches, joins."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from stentor.errors import SettingsError
from stentor_lab.bench.spark.engine import beside_the_engine
from stentor_lab.bench.spark.events import Offers, without_subscriptions
from stentor_lab.bench.spark.latency import micro_batches
from stentor_lab.bench.spark.messages import Messages
from stentor_lab.bench.spark.scale import Bench, Sessions
from stentor_lab.bench.spark.sql import against_joins
from stentor_lab.bench.spark.worker import opening
from stentor_lab.result import BenchOptions, Table


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """All figures of the pipeline; *size* is the subscriptions of the largest table."""
    _need_spark()
    from stentor.pipeline.spark.failures import as_stentor_errors

    sessions = Sessions()
    with TemporaryDirectory(prefix="stentor-bench-") as folder, as_stentor_errors():
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
