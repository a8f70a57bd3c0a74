"""What happened in an afternoon, read from its tables: each question is a query of Spark SQL."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stentor.demo.story import Example, Offer, Story

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from stentor.pipeline.storage.folder import StreamFolder
    from stentor.pipeline.stream.progress import BatchProgress

_CHANGES: Final = "SELECT change, count(*) AS rows FROM {deliveries} GROUP BY change"
_OFFERS: Final = """
    SELECT event.attributes.shop, event.attributes.loc, count(delivery.event) AS delivered
    FROM {events} AS event
    LEFT JOIN {deliveries} AS delivery ON delivery.event = event.id AND delivery.change = 'matched'
    GROUP BY event.id, event.attributes.shop, event.attributes.loc"""
_PEOPLE: Final = """
    SELECT max_by(array(longitude, latitude), seq) AS location
    FROM {subscriptions} WHERE longitude IS NOT NULL GROUP BY id"""
#: The table is a log: the last row of an id counts; those that are over are not in it.
_CURRENT: Final = """
    SELECT count(*) AS rows FROM (
        SELECT max_by(change, seq) AS last,
               max_by(until, seq) FILTER (WHERE change = 'subscribe') AS until
        FROM {subscriptions} GROUP BY id)
    WHERE last != 'unsubscribe' AND coalesce(until > timestamp_micros(:now), true)"""
_REASONS: Final = r"""
    SELECT split(reason, '\n')[0] AS reason, count(*) AS rows FROM {rejected} GROUP BY 1"""
#: Somebody who came upon an offer by walking, late in the afternoon.
_LAST_FOUND: Final = """
    SELECT delivery.event, delivery.subscription, delivery.seq, event.attributes
    FROM {deliveries} AS delivery JOIN {events} AS event ON delivery.event = event.id
    WHERE delivery.change != 'removed'
    ORDER BY delivery.change = 'added' DESC, delivery.seq DESC, delivery.event LIMIT 1"""
_AS_IT_WAS: Final = """
    SELECT max_by(expression, seq) FILTER (WHERE expression IS NOT NULL) AS expression,
           max_by(array(longitude, latitude), seq) FILTER (WHERE longitude IS NOT NULL) AS location
    FROM {subscriptions} WHERE id = :id AND seq <= :seq"""


def story_of(
    spark: SparkSession, path: Path | StreamFolder, batches: list[BatchProgress], seconds: float
) -> Story:
    """The story that the pipeline *path* has written, in these *batches*."""
    from stentor.pipeline.tables import read
    from stentor.pipeline.tables.files import TABLES

    frames = {name: read(spark, path, name) for name in TABLES}
    ask = _Questions(spark, frames)
    changes = {row["change"]: row["rows"] for row in ask(_CHANGES)}
    [current] = ask(_CURRENT, now=batches[-1].time)
    return Story(
        records=sum(progress.records for progress in batches),
        seconds=seconds,
        subscriptions=current["rows"],
        delivered=changes.get("matched", 0),
        added=changes.get("added", 0),
        removed=changes.get("removed", 0),
        reasons=Counter({row["reason"]: row["rows"] for row in ask(_REASONS)}),
        offers=[Offer(row["shop"], list(row["loc"]), row["delivered"]) for row in ask(_OFFERS)],
        people=[list(row["location"]) for row in ask(_PEOPLE)],
        example=_example(ask),
    )


class _Questions:
    """Asks Spark SQL about the tables, by their names in braces."""

    def __init__(self, spark: SparkSession, frames: dict[str, DataFrame]) -> None:
        self._spark = spark
        self._frames = frames

    def __call__(self, query: str, **values: Any) -> list[Any]:
        named = {name: frame for name, frame in self._frames.items() if f"{{{name}}}" in query}
        return self._spark.sql(query, values or None, **named).collect()


def _example(ask: _Questions) -> Example | None:
    for found in ask(_LAST_FOUND):
        [wanted] = ask(_AS_IT_WAS, id=found["subscription"], seq=found["seq"])
        values = found["attributes"].asDict(recursive=True)
        event = {name: _plain(value) for name, value in values.items() if value is not None}
        event["id"] = found["event"]
        return Example(event, found["subscription"], wanted["expression"], wanted["location"])
    return None


def _plain(value: Any) -> Any:
    """A range of one value as that value, a point as a pair."""
    match value:
        case {"low": low, "high": high} if low == high:
            return low
        case {"x": longitude, "y": latitude}:
            return [longitude, latitude]
        case _:
            return value
