"""The same question asked of Spark SQL alone, as a join."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stentor_lab.bench.spark.messages import Messages
from stentor_lab.bench.spark.scale import MOST_ROUNDS, Bench, Staged
from stentor_lab.measure import Answer, Case, measure, stopwatch
from stentor_lab.result import Table, Unit
from stentor_lab.workloads.distributions import words
from stentor_lab.workloads.spatial_keyword import MOST_KEYWORDS, KeywordSubscriptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SUBSCRIPTIONS: Final = 15_000
EVENTS: Final = 50_000

_KEYWORDS: Final = [f"w{number}" for number in range(1, MOST_KEYWORDS + 1)]
_WORDS: Final = "SELECT id AS event, loc[0] AS x, loc[1] AS y, split(text, ' ') AS words FROM {all}"
# Numbers are compared before words, which are dearer; a word that is not asked for is null.
_IN_BOX: Final = "x BETWEEN west AND east AND y BETWEEN south AND north"
_HAS_WORDS: Final = " AND ".join(f"(array_contains(words, {w}) OR {w} IS NULL)" for w in _KEYWORDS)
_BY_PREDICATES: Final = f"""
SELECT event, subscription FROM {{events}} JOIN {{asked}} ON {_IN_BOX} AND {_HAS_WORDS}
"""
_BY_KEYWORD: Final = f"""
SELECT event, subscription FROM (SELECT *, explode(words) AS word FROM {{events}})
JOIN {{asked}} ON word = w1 AND {_IN_BOX} AND {_HAS_WORDS}
"""


def against_joins(bench: Bench, messages: Messages) -> Table:
    """Seconds of joins that any Spark can do, and of `match`; all of them find the same."""
    from stentor.pipeline import build_snapshot, match

    size, count = bench.part(SUBSCRIPTIONS, 50), bench.part(EVENTS, 500)
    drawn = messages.recipe.subscriptions(size)
    ids = pa.array([f"s{row}" for row in range(size)])
    texts = bench.stage(pa.table({"id": ids, "expression": list(drawn.texts())}), "texts")
    columns = bench.stage(_in_columns(ids, drawn), "columns")
    file = messages.events(count, "joined")
    spark = bench.sessions.of(2)

    def read(file: Staged) -> DataFrame:
        return spark.read.parquet(str(file.path))

    events = read(file).repartition(2)
    snapshot = build_snapshot(read(texts), bench.folder / "asked", schema=messages.recipe.schema)

    def joined(query: str) -> DataFrame:
        return spark.sql(query, events=spark.sql(_WORDS, all=events), asked=read(columns))

    cases = [
        _case("Spark SQL, the predicates as a join's condition", lambda: joined(_BY_PREDICATES), 1),
        _case("Spark SQL, joined by a word, then the predicates", lambda: joined(_BY_KEYWORD)),
        _case("match, from texts", lambda: match(events, read(texts))),
        _case("match, with a snapshot", lambda: match(events, snapshot=snapshot)),
    ]
    title = "Which subscriptions want which events: Spark SQL alone, and Stentor in Spark"
    rows = measure(cases, bench.options.repetitions, bench.progress, title)
    workload = {**messages.workload, "subscriptions": size, "events": count, "task slots": 2}
    return Table(title, workload, "question", Unit.SECONDS, rows)


def _in_columns(ids: pa.Array, drawn: KeywordSubscriptions) -> pa.Table:
    """Each subscription as a row of numbers and words, which is how a join would have it."""
    asked = [words(codes[:count]) for codes, count in zip(drawn.codes, drawn.keywords, strict=True)]
    spread = {
        name: pa.array(
            [row[position] if position < len(row) else None for row in asked], pa.string()
        )
        for position, name in enumerate(_KEYWORDS)
    }
    return pa.table({"subscription": ids, **spread, **drawn.boxes._asdict()})


def _case(name: str, ask: Callable[[], DataFrame], most: int = MOST_ROUNDS) -> Case:
    def run() -> None:
        ask().write.format("noop").mode("overwrite").save()

    return Case(name, stopwatch(run), answer=lambda: _pairs(ask()), most=most)


def _pairs(matches: DataFrame) -> Answer:
    """The numbers in the ids of *matches*, sorted."""
    table = matches.select("event", "subscription").toArrow()
    event, subscription = (
        pc.cast(pc.utf8_slice_codeunits(column.combine_chunks(), 1), pa.int64()).to_numpy()
        for column in table.columns
    )
    order = np.lexsort((subscription, event))
    return event[order], subscription[order]
