"""An engine in a folder: saved at once or not at all, opened without copying (but live events).

folder/
  manifest.json    the engine's own: schema, order, time, structure
  subscriptions/   what stands, as `standing.py` writes it,
  index/           and the structure over it
  events/          the live events' columns and ids
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stentor.encoding.columns import EventColumns, Int64, sealed
from stentor.encoding.ragged import take
from stentor.engine.names import StringArrays, Strings
from stentor.engine.standing import open_subscriptions, write_subscriptions
from stentor.errors import FolderError, SettingsError
from stentor.index.bundles import bundle_of, with_prefix
from stentor.index.catalog import structure_class, structure_of
from stentor.index.storage import Meta, new_folder, read_arrays, write_arrays
from stentor.model import Schema

if TYPE_CHECKING:
    from stentor.engine.engine import Engine

ENGINE, EVENTS = "engine", "events"

#: How often a folder that is being saved is opened again.
MOST_TRIES = 5


def save(engine: Engine, path: Path) -> None:
    """Write *engine* to *path*, merged: only what stands, in one fresh index."""
    state = engine._state
    state.expire()
    rows = state.index.standing_rows()
    live = state.index.live.standing_rows()
    structure = structure_of(engine._index_class)
    with new_folder(path) as fresh:
        write_subscriptions(
            fresh,
            state.index.columns_of(rows),
            state.subscribers.ids.arrays(rows),
            state.texts.arrays(rows),
            structure,
        )
        write_arrays(
            fresh / EVENTS,
            {
                **with_prefix("columns", take(state.index.live.columns, live)),
                **with_prefix("ids", state.events.ids.arrays(live)),
            },
            kind=EVENTS,
            meta={"count": len(live)},
        )
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
    state = open_subscriptions(path, structure_class(meta["index"]), verify=verify)
    state.seq, state.time = meta["seq"], meta["time"]
    live, _ = read_arrays(path / EVENTS, kind=EVENTS, verify=verify)
    event_ids = Strings(bundle_of(StringArrays, "ids", live))
    every: Int64 = np.arange(len(event_ids), dtype=np.int64)
    state.hold(sealed(bundle_of(EventColumns, "columns", live)), event_ids.take(every).to_pylist())
    engine._state = state
    return engine
