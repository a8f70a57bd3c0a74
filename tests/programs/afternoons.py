"""A small afternoon in files, and the tables that one engine makes of it, record by record."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

import stentor
from stentor.demo.afternoon import KINDS, Afternoon
from stentor.errors import (
    AlreadyOverError,
    DuplicateEventError,
    StentorError,
    UnknownIdError,
)
from stentor.model import Changes
from stentor.pipeline.commit.manifests import Commits

Json = dict[str, Any]
Row = tuple[Any, ...]

#: The kinds for a source of JSON lines: at the market, prices are ranges.
SOURCE_KINDS = KINDS | {"price": "number range"}

_REFUSED = (AlreadyOverError, DuplicateEventError, UnknownIdError)
_RANGE = pa.struct([("low", pa.float64()), ("high", pa.float64())])
_ARROW = {
    "number": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "point": pa.list_(pa.float64()),
    "number range": _RANGE,
}
_TIME = pa.timestamp("us", tz="UTC")
_FIELDS = {
    "seq": pa.int64(),
    "op": pa.string(),
    "id": pa.string(),
    "time": _TIME,
    "until": _TIME,
    "weights": pa.map_(pa.string(), pa.float64()),
    "expression": pa.string(),
    "at": pa.list_(pa.float64()),
}
COLUMNS = _FIELDS | {name: _ARROW[kind] for name, kind in SOURCE_KINDS.items()}


def afternoon(seed: int, *, people: int = 50, events: int = 110, moves: int = 130) -> list[Json]:
    """Some hundred records of every kind, bad ones and repeated ones among them, each numbered."""
    city = Afternoon(people=people, shops=12, events=events, moves=moves, bad=0.08, seed=seed)
    records = list(city.records())
    kept = [record for record in records if record["op"] == "publish" and "until" in record]
    middle = len(records) // 2
    records.insert(middle, {**kept[len(kept) // 3], "time": records[middle]["time"]})
    return [{"seq": number, **record} for number, record in enumerate(records, start=1)]


def batches_of(records: Sequence[Json], count: int) -> list[list[Json]]:
    """*records* in *count* batches of about equal size."""
    cuts = [len(records) * number // count for number in range(count + 1)]
    return [list(records[start:stop]) for start, stop in pairwise(cuts)]


def write_json(folder: Path, batches: Iterable[Sequence[Json]]) -> None:
    """A file of JSON lines for each of *batches*, in the order in which Spark takes them."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, records in enumerate(batches):
        file = folder / f"{number:03}.jsonl"
        file.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
        _dated(file, number)


def write_parquet(folder: Path, batches: Iterable[Sequence[Json]]) -> None:
    """A Parquet file for each of *batches*, whose records must fit its columns."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, records in enumerate(batches):
        columns = {
            name: pa.array([_cell(record.get(name), of) for record in records], of)
            for name, of in COLUMNS.items()
        }
        file = folder / f"{number:03}.parquet"
        pq.write_table(pa.table(columns), file)
        _dated(file, number)


def fits_columns(record: Json) -> bool:
    """Whether *record* can stand in a Parquet file beside the others."""
    try:
        for name, of in COLUMNS.items():
            pa.array([_cell(record.get(name), of)], of)
    except (pa.ArrowException, TypeError, ValueError):
        return False
    return True


def _cell(value: Any, of: pa.DataType) -> Any:
    if value is None:
        return None
    if of == _TIME:
        return datetime.fromisoformat(value)
    if of == _RANGE and not isinstance(value, dict):
        return {"low": value, "high": value}
    return list(value.items()) if pa.types.is_map(of) else value


def _dated(file: Path, number: int) -> None:
    os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))


class Tables(NamedTuple):
    """What the tables of a pipeline say, and how often: `Counter`s find what is doubled."""

    deliveries: Counter[Row]  # event, subscription, change, score, seq, time, batch
    rejected: Counter[Row]  # name of the record, batch
    subscriptions: Counter[Row]  # id, change, seq, time, batch
    events: Counter[Row]  # id, seq, time, batch
    standing: dict[str, Any]  # where each subscriber is at the end


def in_any_batches(tables: Tables) -> Tables:
    """*tables* without the numbers of batches.

    Where a driver dies between two of Spark's own log files, the next one takes two files at once.
    """
    *rows, standing = tables
    without = (Counter({row[:-1]: count for row, count in one.items()}) for one in rows)
    return Tables(*without, standing)


def expected_tables(batches: Iterable[Sequence[Json]], *, top: int | None = None) -> Tables:
    """What one engine says to the records of *batches*, fed one by one."""
    engine = stentor.Engine(schema=KINDS, clock=None)
    tables = Tables(Counter(), Counter(), Counter(), Counter(), {})
    seq = time = 0
    for batch, records in enumerate(batches):
        for record in records:
            report = engine.step([record], top=top)
            answer = report[0]
            if not isinstance(answer, StentorError) or isinstance(answer, _REFUSED):
                seq += 1  # what cannot be read takes no place in the order
                time = max(time, _micros(datetime.fromisoformat(record["time"])))
            where = (seq, time, batch)
            id = record.get("id")
            if isinstance(answer, StentorError):
                tables.rejected[_name(record), batch] += 1
            elif isinstance(answer, Changes):
                tables.subscriptions[id, record["op"], *where] += 1
                for change, events in (("added", answer.added), ("removed", answer.removed)):
                    tables.deliveries.update((event, id, change, None, *where) for event in events)
            else:
                for row in report.matches.to_pylist():
                    score = row.get("score")
                    tables.deliveries[id, row["subscription"], "matched", score, *where] += 1
                if "until" in record:
                    tables.events[id, *where] += 1
    tables.standing.update({id: engine.get(id).get("at") for id in engine})
    return tables


def found_tables(path: Path) -> Tables:
    """What the tables of the pipeline *path* say."""
    last = Commits(path).last()
    assert last is not None
    rows = {
        name: DeltaTable(path / "tables" / name).to_pyarrow_table().to_pylist()
        for name in ("deliveries", "rejected", "subscriptions", "events")
    }
    return Tables(
        Counter(
            (row["event"], row["subscription"], row["change"], row["score"], *_where(row))
            for row in rows["deliveries"]
        ),
        Counter((_name(json.loads(row["record"])), row["batch"]) for row in rows["rejected"]),
        Counter((row["id"], row["change"], *_where(row)) for row in rows["subscriptions"]),
        Counter((row["id"], *_where(row)) for row in rows["events"]),
        _standing(rows["subscriptions"], last.time),
    )


def _where(row: Json) -> Row:
    return row["seq"], _micros(row["time"]), row["batch"]


def _micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


def _name(record: Json) -> Any:
    """What a rejected record is known by: its id, or its number where it has none."""
    return record.get("id", record.get("seq", record.get("order")))


def _standing(rows: Iterable[Json], time: int) -> dict[str, Any]:
    """Where those are who stand at *time*: the last row of an id counts."""
    standing: dict[str, Any] = {}
    until: dict[str, datetime | None] = {}
    for row in sorted(rows, key=lambda row: row["seq"]):
        standing.pop(row["id"], None)
        if row["change"] != "unsubscribe":
            place = [row["longitude"], row["latitude"]]
            standing[row["id"]] = None if place == [None, None] else place
            until[row["id"]] = row["until"]
    return {
        id: place
        for id, place in standing.items()
        if (end := until[id]) is None or _micros(end) > time
    }
