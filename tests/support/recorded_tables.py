"""A pipeline's tables as one engine would fill them, written without Spark."""

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from stentor.demo.afternoon import KINDS
from stentor.engine import Engine
from stentor.errors import StentorError
from stentor.model.values.time import parse_timestamp
from stentor.pipeline.tables.files import TIME, table_folder, table_schemas

_KINDS = {"string": pa.string(), "number": pa.float64(), "boolean": pa.bool_()}
_RANGE = pa.struct([("low", pa.float64()), ("high", pa.float64())])
_POINT = pa.struct([("x", pa.float64()), ("y", pa.float64())])
ATTRIBUTES = pa.struct(
    [(name, _KINDS.get(kind)) for name, kind in KINDS.items() if name not in ("price", "loc")]
    + [("price", _RANGE), ("loc", _POINT)]
)


def table_rows(records, engine=None):
    """The rows of each table that *records* lead to, a batch for every hundred of them."""
    engine = engine or Engine(clock=None)
    rows = {"subscriptions": [], "events": [], "deliveries": []}
    answers = engine.step(records)
    for seq, (record, answer) in enumerate(zip(records, answers, strict=True), 1):
        when = {"seq": seq, "time": _micros(record["time"]), "batch": seq // 100, "order": seq}
        if isinstance(answer, StentorError):
            continue
        if record["op"] == "publish":
            if "until" in record:
                rows["events"].append(_event(record) | when)
            rows["deliveries"] += [_delivery(record["id"], id, "matched") | when for id in answer]
        else:
            rows["subscriptions"].append(_change(record) | when)
            for change in ("added", "removed"):
                events = getattr(answer, change, ())
                rows["deliveries"] += [_delivery(e, record["id"], change) | when for e in events]
    return rows


def write_tables(path: Path, rows, *, mode="append") -> None:
    """Write *rows* into the tables of the pipeline *path*."""
    schemas = table_schemas(ATTRIBUTES)
    for name in ("subscriptions", "events", "deliveries"):
        plain = pa.schema([pa.field(f.name, pa.int64() if f.type == TIME else f.type)
                           for f in schemas[name]])  # fmt: skip
        table = pa.Table.from_pylist(rows[name], schema=plain).cast(schemas[name])
        write_deltalake(table_folder(path, name).local, table, mode=mode)


def _micros(time):
    return parse_timestamp(time)


def _delivery(event, subscription, change):
    return {"event": event, "subscription": subscription, "change": change}


def _change(record):
    longitude, latitude = record.get("at") or (None, None)
    return {
        "id": record["id"],
        "change": record["op"],
        "expression": record.get("expression"),
        "longitude": longitude,
        "latitude": latitude,
        "until": _micros(record["until"]) if "until" in record else None,
    }


def _event(record):
    price = record.get("price")
    if price is not None and not isinstance(price, dict):
        price = {"low": price, "high": price}
    x, y = record["loc"]
    attributes = {name: record[name] for name in KINDS if name in record}
    return {
        "id": record["id"],
        "attributes": attributes | {"price": price, "loc": {"x": x, "y": y}},
        "until": _micros(record["until"]),
    }
