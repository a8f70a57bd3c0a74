"""What a pipeline's tables tell, as rows that a map can play: read without Spark, as far as wanted.

A row is `[kind, milliseconds, …]`, in the order in which records happened:

    [0, t, id, expression, longitude, latitude, until]   a subscription
    [1, t, id, longitude, latitude]                      it moves
    [2, t, id]                                           it ends
    [3, t, event, longitude, latitude, until, {…}]       an event that stays live for a while
    [4, t, event, [id, …]]                               is matched when published
    [5, t, id, [event, …]], [6, t, id, [event, …]]       events that it gains, that it loses

where ids, events and expressions are positions in lists of their own, and times count from `start`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from stentor.errors import FolderError
from stentor.pipeline.storage.folder import StreamFolder
from stentor.pipeline.tables.delta_log import is_table, open_table
from stentor.pipeline.tables.files import table_folder

#: The tables that a recording is made of; a cursor has the last batch read of each.
RECORDED: Final = ("subscriptions", "events", "deliveries")
MOST_ROWS: Final = 400_000
_SUBSCRIBE, _MOVE, _UNSUBSCRIBE, _EVENT, _MATCHED, _ADDED, _REMOVED = range(7)
_CHANGES: Final = {"subscribe": _SUBSCRIBE, "move": _MOVE, "unsubscribe": _UNSUBSCRIBE}
_DECIMALS: Final = 6

Row = dict[str, Any]
Cursor = Mapping[str, int]
START: Final[Cursor] = dict.fromkeys(RECORDED, -1)


class _Numbers(dict[str, int]):
    """Names by number: each new one gets the next."""

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number


class _Names(NamedTuple):
    ids: _Numbers
    events: _Numbers
    expressions: _Numbers


def read_recording(
    path: Path | StreamFolder, after: Cursor = START, *, most: int = MOST_ROWS
) -> Row:
    """What the tables of the pipeline *path* have beyond the batches *after*.

    Of each table at most about *most* rows, the newest: whole files of it. `left_out` says how
    many older ones there are, `cursor` where to go on.
    """
    tables = {name: _rows(path, name, after[name], most) for name in RECORDED}
    found = {name: table for name, (table, _) in tables.items()}
    times = [pc.min(table["time"]).as_py() for table in found.values() if table.num_rows]
    starts = [moment for moment in times if moment is not None]
    start = int(min(starts).timestamp() * 1000) if starts else 0
    names = _Names(_Numbers(), _Numbers(), _Numbers())
    rows = [
        *_subscription_rows(found["subscriptions"], start, names),
        *_event_rows(found["events"], start, names),
        *_delivery_rows(found["deliveries"], start, names),
    ]
    rows.sort(key=itemgetter(0))
    return {
        "start": start,
        "ids": list(names.ids),
        "events": list(names.events),
        "expressions": list(names.expressions),
        "rows": [row for _, row in rows],
        "cursor": {
            name: max(after[name], pc.max(table["batch"]).as_py() if table.num_rows else -1)
            for name, table in found.items()
        },
        "left_out": sum(left_out for _, left_out in tables.values()),
    }


def _rows(path: Path | StreamFolder, name: str, after: int, most: int) -> tuple[pa.Table, int]:
    """The rows of a table beyond the batch *after*, in order, and how many were left out."""
    folder = table_folder(path, name)
    if not is_table(folder):
        raise FolderError(
            f"{path} holds no table {name}: name the folder of a pipeline, the `path` in its "
            "[tables]"
        )
    table = open_table(folder)
    least, left_out = _newest(table, after, most)
    wanted = (pc.field("batch") > after) & (pc.field("seq") >= least)
    rows = table.to_pyarrow_dataset().to_table(filter=wanted)
    return rows.sort_by("seq"), left_out


def _newest(table: DeltaTable, after: int, most: int) -> tuple[int, int]:
    """The smallest seq of the newest files that hold *most* rows, and how many others hold."""
    files = pa.table(table.get_add_actions(flatten=True))
    if not files.num_rows:
        return 0, 0
    bounds = ("num_records", "min.seq", "max.seq", "max.batch")
    described = sorted(
        zip(*(files[name].to_pylist() for name in bounds), strict=True), key=lambda file: -file[2]
    )
    least, taken, left_out = described[0][1], 0, 0
    for records, low, _, batch in described:
        if batch <= after:
            continue
        if taken and taken + records > most:
            left_out += records
            continue
        taken += records
        least = min(least, low)
    return least, left_out


def _millis(column: pa.ChunkedArray, start: int) -> list[int | None]:
    """Times as milliseconds since *start*."""
    micros = column.cast(pa.int64()).to_pylist()
    return [None if moment is None else moment // 1000 - start for moment in micros]


def _times(rows: pa.Table, start: int) -> list[int]:
    return [moment or 0 for moment in _millis(rows["time"], start)]


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, _DECIMALS)


def _subscription_rows(rows: pa.Table, start: int, names: _Names) -> Iterator[tuple[Any, Any]]:
    columns = ("seq", "change", "id", "expression", "longitude", "latitude")
    values = zip(*(rows[name].to_pylist() for name in columns), strict=True)
    moments = zip(_times(rows, start), _millis(rows["until"], start), strict=True)
    for (seq, change, id, expression, *at), (time, until) in zip(values, moments, strict=True):
        kind = _CHANGES[change]
        where = [_rounded(number) for number in at]
        row: list[Any] = [kind, time, names.ids[id]]
        if kind == _SUBSCRIBE:
            row += [names.expressions[expression or ""], *where, until]
        elif kind == _MOVE:
            row += where
        yield (seq, kind), row


def _event_rows(rows: pa.Table, start: int, names: _Names) -> Iterator[tuple[Any, Any]]:
    attributes = rows["attributes"].to_pylist() if "attributes" in rows.column_names else []
    moments = zip(_times(rows, start), _millis(rows["until"], start), strict=True)
    described = zip(rows["seq"].to_pylist(), rows["id"].to_pylist(), moments, strict=True)
    for number, (seq, id, (time, until)) in enumerate(described):
        values = attributes[number] if attributes else {}
        plain = {name: _plain(value) for name, value in values.items() if value is not None}
        where = next((value for value in plain.values() if _is_point(value)), (None, None))
        yield (
            (seq, _EVENT),
            [_EVENT, time, names.events[id], *map(_rounded, where), until, plain],
        )


def _delivery_rows(rows: pa.Table, start: int, names: _Names) -> Iterator[tuple[Any, Any]]:
    columns = (rows[name].to_pylist() for name in ("seq", "change", "event", "subscription"))
    deliveries = zip(*columns, _times(rows, start), strict=True)
    grouped = sorted(deliveries, key=itemgetter(0, 1))
    for (seq, change), some in groupby(grouped, key=itemgetter(0, 1)):
        by_event = change == "matched"
        kind = _MATCHED if by_event else (_ADDED if change == "added" else _REMOVED)
        pairs = sorted((row[2], row[3], row[4]) if by_event else (row[3], row[2], row[4])
                       for row in some)  # fmt: skip
        first, second = (names.events, names.ids) if by_event else (names.ids, names.events)
        for one, others in groupby(pairs, key=itemgetter(0)):
            listed = list(others)
            yield (
                (seq, kind),
                [kind, listed[0][2], first[one], [second[other] for _, other, _ in listed]],
            )


def _is_point(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2


def _plain(value: Any) -> Any:
    """A value as JSON has it: a range of one value as that value, a point as a pair."""
    match value:
        case {"low": low, "high": high}:
            return low if low == high else {"low": low, "high": high}
        case {"x": longitude, "y": latitude}:
            return [longitude, latitude]
        case bool() | int() | float() | str() | list():
            return value
        case _:
            return str(value)


class DeliveryRow(NamedTuple):
    """A row of the table of deliveries."""

    event: str
    subscription: str
    change: str
    order: int | None


def last_batch(path: Path | StreamFolder) -> int:
    """The last batch of the pipeline *path* that delivered something; −1 where none did."""
    return read_deliveries(path, -1, most=0)[1]


def read_deliveries(
    path: Path | StreamFolder, after: int, *, most: int = MOST_ROWS
) -> tuple[list[DeliveryRow], int]:
    """What was delivered in batches beyond *after*, in order, and the last such batch.

    Whole batches, about *most* rows of them and at least one. Cost: files that hold nothing new
    are passed over by the table's log.
    """
    folder = table_folder(path, "deliveries")
    if not is_table(folder):
        return [], after
    table = open_table(folder)
    files = pa.table(table.get_add_actions(flatten=True))
    if not files.num_rows:
        return [], after
    bounds = [files[name].to_pylist() for name in ("num_records", "min.batch", "max.batch")]
    fresh = sorted(
        (high, low, records)
        for records, low, high in zip(*bounds, strict=True)
        if high is not None and high > after
    )
    if not fresh:
        return [], after
    last = fresh[-1][0]
    if most == 0:
        return [], last
    taken = 0
    for high, _, records in fresh:
        if taken and taken + records > most:
            break
        taken, last = taken + records, high
    wanted = (pc.field("batch") > after) & (pc.field("batch") <= last)
    names = ["event", "subscription", "change", "order", "seq"]
    rows = table.to_pyarrow_dataset().to_table(columns=names, filter=wanted)
    rows = rows.sort_by([("seq", "ascending"), ("subscription", "ascending")])
    columns = (rows[name].to_pylist() for name in names[:-1])
    return [DeliveryRow(*row) for row in zip(*columns, strict=True)], last


def read_events(path: Path | StreamFolder, ids: Collection[str]) -> dict[str, Row]:
    """The live events *ids* as the table of events has them, their attributes beside their ids."""
    if not ids:
        return {}
    folder = table_folder(path, "events")
    if not is_table(folder):
        return {}
    table = open_table(folder)
    wanted = pc.field("id").isin(pa.array(sorted(ids), pa.string()))
    rows = table.to_pyarrow_dataset().to_table(filter=wanted).sort_by("seq").to_pylist()
    found = {}
    for row in rows:
        attributes = row.get("attributes") or {}
        known = {name: _plain(value) for name, value in attributes.items() if value is not None}
        until = {} if row["until"] is None else {"until": row["until"].isoformat()}
        found[row["id"]] = {"id": row["id"], **known, **until}
    return found
