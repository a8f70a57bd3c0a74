"""An odd cell is the same value in files that Spark reads as in a dict, or is refused alike.

Each door is one read of all cells.
"""

import csv
import json
import math
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from stentor.errors import StentorError
from stentor.model import Constant, Kind, Point, Range, Schema, Value
from stentor.model.values.members import read_set
from stentor.pipeline.sources import SourceSettings, open_source
from stentor.pipeline.sources.columns import Origin
from stentor.wire.events import event_from_dict
from tests.odd_cells import CELLS, OddCell

KINDS = {
    "price": "number",
    "brand": "string",
    "new": "boolean",
    "day": "timestamp",
    "loc": "point",
    "tags": "set",
}
NAMES = {kind: name for name, kind in KINDS.items()}
SCHEMA = Schema.declare(KINDS)
Outcome = Value | str | None


def expected(id: str, cell: OddCell) -> Outcome:
    name = NAMES[cell.kind]
    try:
        event = event_from_dict({"id": id, name: cell.raw}, SCHEMA)
    except StentorError as error:
        return str(error)
    value = event.attributes.get(name)
    if isinstance(value, Constant) and value.kind in (Kind.NUMBER, Kind.TIMESTAMP):
        assert isinstance(value.value, float)
        return Range(value.kind, value.value, value.value)  # as the frame has them
    return value


def as_json(id: str, cell: OddCell) -> str:
    return json.dumps({"id": id, NAMES[cell.kind]: cell.raw}, ensure_ascii=False, allow_nan=False)


def as_csv(id: str, cell: OddCell) -> str:
    """A line of CSV; a ValueError where the cell would be another one there."""
    raw = cell.raw
    if isinstance(raw, (list, dict)):
        if cell.kind not in ("point", "set", "number", "timestamp") or isinstance(raw, list) != (
            cell.kind in ("point", "set")
        ):
            raise ValueError("of such a kind CSV has no lists and no objects")
        raw = json.dumps(raw, allow_nan=False)
    elif raw is None:
        raw = ""
    elif cell.kind == "set" and not isinstance(raw, str):
        raise ValueError("it would be a text")
    elif isinstance(raw, bool) or type(raw) in (int, float) or isinstance(raw, str):
        raw = str(raw)
    else:
        raise ValueError("it is no text")
    is_blank = not raw.strip() or raw != raw.strip()
    if cell.raw is not None and (is_blank or {"\x00", "\ufffd"} & {*raw}):
        raise ValueError("CSV leaves it out, or takes it for a sign of bytes that are not UTF-8")
    out = StringIO()
    cells = [id, *(raw if name == NAMES[cell.kind] else "" for name in KINDS)]
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue().removesuffix("\n")


def value_in(row: dict[str, Any], kind: str) -> Outcome:
    found = row[NAMES[kind]]
    if found is None:
        return None
    if kind == "point":
        return Point(found["x"], found["y"])
    if kind == "set":
        return read_set(found["set"])
    if kind == "number":
        return Range(Kind.NUMBER, found["low"], found["high"])
    if kind == "timestamp":
        low, high = found["low"], found["high"]
        return Range(
            Kind.TIMESTAMP,
            -math.inf if low is None else float(low // 1),
            math.inf if high is None else float(high // 1),
        )
    return Constant(Kind(kind), float(found) if kind == "boolean" else found)


@pytest.mark.parametrize(
    ("word", "line_of", "header", "least"),
    [("json", as_json, [], 0.6), ("csv", as_csv, [",".join(["id", *KINDS])], 0.3)],
)
def test_odd_cells_mean_what_they_mean_without_spark(
    spark: SparkSession,
    tmp_path: Path,
    word: str,
    line_of: Callable[[str, OddCell], str],
    header: list[str],
    least: float,
) -> None:
    lines, cells = [*header], {}
    for number, cell in enumerate(CELLS):
        try:
            line = line_of(f"e{number}", cell)
            line.encode()
        except (TypeError, ValueError):
            continue  # this door has no form for it
        lines.append(line)
        cells[f"e{number}"] = cell
    assert len(cells) > least * len(CELLS)
    (tmp_path / f"a.{word}").write_bytes("\n".join(lines).encode())
    source = SourceSettings(format=word, kind="events", path=str(tmp_path))
    table = open_source(spark, source, KINDS, streaming=False).df.toArrow()
    wrong, seen = [], set()
    for row in plain(table):
        raw = row[Origin.RAW]
        id = row["id"] or (json.loads(raw)["id"] if word == "json" else raw.split(",")[0])
        seen.add(id)
        found = row[Origin.PROBLEM] or value_in(row["attributes"], cells[id].kind)
        if found != expected(id, cells[id]):
            wrong.append(f"{cells[id]}: {found!r}, but as a dict {expected(id, cells[id])!r}")
    assert seen == set(cells)
    assert not wrong, "\n".join(wrong)


def plain(table: Any) -> list[dict[str, Any]]:
    """The rows of *table*; instants as microseconds, because Python has fewer years."""
    rows: list[dict[str, Any]] = table.drop_columns(["until", "attributes"]).to_pylist()
    attributes = table["attributes"].combine_chunks()
    cells = {}
    for field, array in zip(attributes.type, attributes.flatten(), strict=True):
        if field.name == "day":
            is_null = array.is_null().to_pylist()
            ends = [end.cast("int64").to_pylist() for end in array.flatten()]
            cells["day"] = [
                None if gone else {"low": low, "high": high}
                for gone, low, high in zip(is_null, *ends, strict=True)
            ]
        else:
            cells[field.name] = array.to_pylist()
    for number, row in enumerate(rows):
        row["attributes"] = {name: own[number] for name, own in cells.items()}
    return rows
