"""An engine in a folder: saved at once or not at all, opened without copying (but live events).

folder/
  manifest.json    the engine's own: schema, order, time, structure
  subscriptions/   their columns, ids, texts, and the ids' order by hash
  events/          the live events' columns and ids
  index/           what the structure keeps beside the columns
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, SubscriptionColumns, sealed
from stentor.encoding.ragged import take
from stentor.engine.names import IdOrder, Register, StringArrays, Strings
from stentor.engine.state import State
from stentor.errors import FolderError, SettingsError
from stentor.index.catalog import structure_class, structure_of
from stentor.index.layered import layered
from stentor.index.storage import Meta, new_folder, read_arrays, write_arrays
from stentor.model import Schema

if TYPE_CHECKING:
    from stentor.engine.engine import Engine

ENGINE, SUBSCRIPTIONS, EVENTS, INDEX = "engine", "subscriptions", "events", "index"

#: How often a folder that is being saved is opened again.
MOST_TRIES = 5

Bundle = TypeVar("Bundle", SubscriptionColumns, EventColumns, StringArrays, IdOrder)


def save(engine: Engine, path: Path) -> None:
    """Write *engine* to *path*, merged: only what stands, in one fresh index."""
    state = engine._state
    state.expire()
    rows = state.index.standing_rows()
    columns = state.index.columns_of(rows)
    ids = state.subscribers.ids.arrays(rows)
    live = state.index.live.standing_rows()
    structure = structure_of(engine._index_class)
    with new_folder(path) as fresh:
        write_arrays(
            fresh / SUBSCRIPTIONS,
            {
                **_named("columns", columns),
                **_named("ids", ids),
                **_named("texts", state.texts.arrays(rows)),
                **_named("order", IdOrder.of(ids)),
            },
            kind=SUBSCRIPTIONS,
            meta={"count": len(rows)},
        )
        write_arrays(
            fresh / EVENTS,
            {
                **_named("columns", take(state.index.live.columns, live)),
                **_named("ids", state.events.ids.arrays(live)),
            },
            kind=EVENTS,
            meta={"count": len(live)},
        )
        structure.build(columns).save(fresh / INDEX)
        meta = {
            "schema": engine.schema.to_dict(),
            "index": structure.name,
            "seq": state.seq,
            "time": state.time,
            "save": secrets.token_hex(8),
        }
        write_arrays(fresh, {}, kind=ENGINE, meta=meta)


def open_engine(
    engine_class: type[Engine], path: Path, verify: bool, settings: dict[str, Any]
) -> Engine:
    """The engine in *path*; *settings* are those of `Engine`, but for schema and index.

    The parts are opened one after another, so a save in between would mix two engines: the
    manifest is read again at the end, and everything once more where it has changed.
    """
    for fixed in {"schema", "index"} & settings.keys():
        raise SettingsError(f"an opened engine has the {fixed} that it was saved with")
    for _ in range(MOST_TRIES):
        _, meta = read_arrays(path, kind=ENGINE)
        try:
            engine = _opened(engine_class, path, meta, verify, settings)
        except FolderError:
            if read_arrays(path, kind=ENGINE)[1]["save"] == meta["save"]:
                raise
            continue
        if read_arrays(path, kind=ENGINE)[1]["save"] == meta["save"]:
            return engine
    raise FolderError(f"{path} is saved again faster than it can be opened; try again later")


def _opened(
    engine_class: type[Engine], path: Path, meta: Meta, verify: bool, settings: dict[str, Any]
) -> Engine:
    schema = Schema.from_dict(meta["schema"])
    engine = engine_class(meta["index"], schema=schema, **settings)
    arrays, _ = read_arrays(path / SUBSCRIPTIONS, kind=SUBSCRIPTIONS, verify=verify)
    columns = sealed(_bundle(SubscriptionColumns, "columns", arrays))
    structure = structure_class(meta["index"])
    if verify:
        read_arrays(path / INDEX, kind=structure.name, verify=True)
    index = layered(structure).open(path / INDEX, columns)
    ids = _bundle(StringArrays, "ids", arrays)
    state = State(index, Register(ids, _bundle(IdOrder, "order", arrays)))
    state.texts = Strings(_bundle(StringArrays, "texts", arrays))
    state.seq, state.time = meta["seq"], meta["time"]
    state.watch_endings(columns.until)
    live, _ = read_arrays(path / EVENTS, kind=EVENTS, verify=verify)
    event_ids = Strings(_bundle(StringArrays, "ids", live))
    every: Int64 = np.arange(len(event_ids), dtype=np.int64)
    state.hold(sealed(_bundle(EventColumns, "columns", live)), event_ids.take(every).to_pylist())
    engine._state = state
    return engine


def _named(prefix: str, bundle: Bundle) -> dict[str, Any]:
    return {f"{prefix}.{name}": array for name, array in bundle._asdict().items()}


def _bundle(kind: type[Bundle], prefix: str, arrays: dict[str, Any]) -> Bundle:
    return kind(*(arrays[f"{prefix}.{name}"] for name in kind._fields))
