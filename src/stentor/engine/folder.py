"""An engine in a folder: saved as a whole, opened without copying."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import numpy as np

import stentor
from stentor._files import explain_os_errors
from stentor.encoding.check import fault
from stentor.encoding.columns import (
    EventColumns,
    Int64,
    SubscriptionColumns,
    read_only_columns,
    subscription_count,
)
from stentor.encoding.ragged import take
from stentor.engine import cold
from stentor.engine.auto import AutoChoice
from stentor.engine.ids import HashOrder, IdTable, StringArrays, StringStore
from stentor.engine.state import State
from stentor.engine.tags import TagArrays, TagTable
from stentor.engine.texts import ExpressionTexts
from stentor.errors import FolderError, SettingsError
from stentor.index.catalog import (
    AUTO,
    index_class,
    structure_class,
    structure_of,
)
from stentor.index.contract import NOTHING_LEARNED, Learned
from stentor.index.layered import layered
from stentor.index.storage.arrays import (
    Meta,
    bundle_of,
    inner_folder,
    new_folder,
    read_arrays,
    refuse,
    with_prefix,
    write_arrays,
)
from stentor.index.storage.folders import current, local_folder
from stentor.index.structure import Structure
from stentor.index.trial import TrialResult
from stentor.model import Schema
from stentor.model.values.labels import read_labels
from stentor.model.values.string import describe
from stentor.model.values.time import BEGINNING, NEVER

if TYPE_CHECKING:
    from stentor.engine.engine import Engine

SUBSCRIPTIONS, INDEX = "subscriptions", "index"
ENGINE, EVENTS, TAGS = "engine", "events", "tags"
#: In the folder of a durable engine.
STORE = "store.sqlite"
#: A folder of at most so many bytes is not trusted at all: that takes a second at most.
DOUBTED = 1 << 26
#: About a thousand subscriptions: what is opened without waiting for kernels.
_SMALL = 1 << 19
#: Seconds in which a folder that is saved again and again is tried again.
PATIENCE = 10.0
_LOOKS = 5


class Trust(NamedTuple):
    """What of a folder is looked at before it is used."""

    sums: bool = False  # every byte is read and compared with what was written
    ranges: bool = False  # offsets, codes and rows of the columns stay within their arrays
    builds: bool = False  # the index is built anew from the columns, what was saved of it ignored


def write_subscriptions(
    folder: Path,
    columns: SubscriptionColumns,
    ids: StringArrays,
    texts: StringArrays,
    structure: type[Structure],
    history: EventColumns | None = None,
    learned: Learned = NOTHING_LEARNED,
) -> None:
    """Put subscriptions and a fresh *structure* over them into *folder*.

    *history* and *learned* are for `Structure.build`.

    The caller replaces the folder as a whole (`new_folder`).

    Cost: building the structure, a sort of the ids' hashes.
    """
    write_arrays(
        folder / SUBSCRIPTIONS,
        {
            **with_prefix("columns", columns),
            **with_prefix("ids", ids),
            **with_prefix("texts", texts),
            **with_prefix("order", HashOrder.of(ids)),
        },
        kind=SUBSCRIPTIONS,
        meta={"count": subscription_count(columns)},
    )
    structure.build(columns, history, learned).save(folder / INDEX)


def open_subscriptions(
    folder: Path, structure: type[Structure], trust: Trust, *, attributes: int = 0
) -> State:
    """A state over what `write_subscriptions` put into *folder*.

    Nothing is read or copied yet, but for what *trust* says to check; *attributes* are those
    of the schema. Changes go into a layer above.
    """
    inner = inner_folder(folder, SUBSCRIPTIONS)
    arrays, _ = read_arrays(inner, kind=SUBSCRIPTIONS, verify=trust.sums)
    columns = bundle_of(SubscriptionColumns, "columns", arrays)
    ids, texts = (bundle_of(StringArrays, name, arrays) for name in ("ids", "texts"))
    order = bundle_of(HashOrder, "order", arrays)
    if trust.ranges:
        refuse(inner, fault(columns, attributes))
        for names in (ids, texts):
            refuse(inner, names.fault(len(columns.until)))
        refuse(inner, order.fault(len(columns.until)))
    if trust.builds:
        order = HashOrder.of(ids)
    inner = inner_folder(folder, INDEX)
    if trust.sums:
        kinds = structure.name, structure.name.split()[0]  # a BE*-Tree does not say its settings
        read_arrays(inner, kind=kinds, verify=True)
    layers, columns = layered(structure), read_only_columns(columns)
    if trust.builds:
        index = layers.build(columns, learned=structure.learned_in(inner, columns))
    else:
        index = layers.open(inner, columns)
    state = State(index, IdTable(ids, order))
    state.texts = ExpressionTexts(texts)
    state.watch_endings(columns.until)
    return state


def is_durable(path: Path) -> bool:
    """Whether a durable engine lives in the folder *path*."""
    with explain_os_errors(path):
        return (path / STORE).exists()


def save(engine: Engine, path: Path) -> None:
    """Write *engine* to *path*, merged: only what is current, in one fresh index."""
    if is_durable(path):
        raise FolderError(f"{path} is a durable engine's, and is not replaced; choose another")
    state = engine._state
    with state.change():
        state.expire()
    rows = state.index.current_rows()
    live = state.index.live.current_rows()
    columns = state.index.columns_of(rows)
    is_auto = engine._index == AUTO
    structure = structure_of(
        index_class(engine._auto.name_for(columns)) if is_auto else engine._index_class
    )
    with new_folder(path) as fresh:
        write_subscriptions(
            fresh,
            columns,
            state.subscribers.ids.arrays(rows),
            state.texts.arrays(rows),
            structure,
            state.history,
            state.index.learned(rows),
        )
        if not state.tags.is_empty:
            tags = state.tags.arrays(rows)
            arrays = {
                **with_prefix("sets", tags.set_text),
                **with_prefix("owners", tags.owner_text),
            }
            arrays |= {"set_code": tags.set_code, "owner_code": tags.owner_code}
            write_arrays(fresh / TAGS, arrays, kind=TAGS, meta={"count": len(rows)})
        write_arrays(
            fresh / EVENTS,
            {
                **with_prefix("columns", take(state.index.live.columns, live)),
                **with_prefix("ids", state.events.ids.arrays(live)),
            },
            kind=EVENTS,
            meta={"count": len(live), "among": _among(state, live)},
        )
        meta = {
            "schema": engine.schema.to_dict(),
            "index": structure.name,
            "auto": is_auto,
            "measured": engine._auto.measured and [*engine._auto.measured],
            "seq": state.seq,
            "time": state.time,
            "save": secrets.token_hex(8),
            "stentor": stentor.__version__,
        }
        write_arrays(fresh, {}, kind=ENGINE, meta=meta)


def open_engine(
    engine_class: type[Engine],
    path: Path,
    verify: bool | None,
    settings: dict[str, Any],
    *,
    schema: Schema | None = None,
) -> Engine:
    """The engine in *path*; *settings* are those of `Engine`, but for the index.

    A schema among them may have attributes that are new; *schema* is what is known instead of what
    was saved.

    The parts are opened one after another, so a save in between would mix two engines: the
    manifest is read again at the end, and everything once more where it has changed.
    """
    if "index" in settings:
        raise SettingsError("an opened engine has the index that it was saved with")
    engine_class(**settings)  # what is wrong with these is not the folder's fault
    others = {name: said for name, said in settings.items() if name != "schema"}
    over, pause, unknown = time.monotonic() + PATIENCE, 0.001, 0
    while True:
        before = _save_of(path)
        try:
            meta = _meta(path)
            known = _schema(path, meta) if schema is None else schema
            if settings.get("schema") is not None:
                known.grow(settings["schema"])
            engine = _opened(engine_class, path, meta, known, verify, others)
        except FolderError:
            # A folder that is being replaced is not there for a moment: look again, a few times.
            unknown += before[1] is None
            if _save_of(path) == before and (before[1] is not None or unknown > _LOOKS):
                raise
        else:
            if _save_of(path) == before:
                return engine
        if time.monotonic() > over:
            break
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
    raise FolderError(f"{path} is saved again faster than it can be opened; try again later")


class _EngineMeta(msgspec.Struct):
    """What the manifest of an engine says, of which types; numbers fit into the columns'."""

    schema: dict[str, Any]
    index: str
    seq: Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
    time: Annotated[int, msgspec.Meta(ge=BEGINNING, lt=NEVER)]
    save: str
    stentor: str = ""  # the version that wrote it; 0.1 did not say
    auto: bool = False  # the index was chosen, and may be another when it is built anew
    measured: TrialResult | None = None  # what it was chosen by, beside the size


def written_by(path: Path) -> str:
    """The version of Stentor that saved the engine in *path*; empty where it did not say."""
    return str(_meta(path).get("stentor", ""))


def _save_of(path: Path) -> tuple[Path, str | None]:
    """Where the folder is, and which save wrote it; None where that cannot be read just now.

    A save moves the old folder aside first: what was being read there is then elsewhere.
    """
    folder = current(path)
    try:
        return folder, str(_meta(path)["save"])
    except FolderError:
        return folder, None


def _meta(path: Path) -> Meta:
    meta = read_arrays(path, kind=ENGINE)[1]
    try:
        msgspec.convert(meta, _EngineMeta)
    except msgspec.ValidationError as error:
        refuse(path, f"the manifest ({error})")
    return meta


def _schema(path: Path, meta: Meta) -> Schema:
    try:
        return Schema.from_dict(meta["schema"])
    except ValueError as error:
        raise FolderError(f"{path} is damaged: its manifest cannot be right ({error})") from None


def _opened(
    engine_class: type[Engine],
    path: Path,
    meta: Meta,
    schema: Schema,
    verify: bool | None,
    settings: dict[str, Any],
) -> Engine:
    try:
        structure = structure_class(meta["index"])
        measured = msgspec.convert(meta.get("measured"), TrialResult | None)
        if measured is not None:
            structure_class(measured.name)
        engine = engine_class(meta["index"], schema=schema, **settings)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FolderError(f"{path} is damaged: its manifest cannot be right ({error})") from None
    schema.is_shared = False
    if meta.get("auto", False):
        engine._index, engine._auto = AUTO, AutoChoice(True)
        engine._auto.measured = measured
    try:
        size = sum(file.lstat().st_size for file in current(path).rglob("*"))
    except OSError as error:  # a save goes on, or the disk fails
        raise FolderError(f"{path} cannot be read: {error}") from None
    trust = _trust(size, verify)
    with cold.kernels(structure.name.split()[0], is_small=size <= _SMALL):
        state = open_subscriptions(path, structure, trust, attributes=schema.code_count)
        state.seq, state.time = meta["seq"], meta["time"]
        _open_tags(path, state, trust)
        _open_events(path, state, trust, schema)
    engine._state = state
    return engine


def _open_events(path: Path, state: State, trust: Trust, schema: Schema) -> None:
    inner = inner_folder(path, EVENTS)
    live, meta = read_arrays(inner, kind=EVENTS, verify=trust.sums)
    columns, ids = bundle_of(EventColumns, "columns", live), bundle_of(StringArrays, "ids", live)
    if trust.ranges:
        refuse(inner, fault(columns, schema.code_count))
        refuse(inner, ids.fault(len(columns.until)))
    event_ids = StringStore(ids)
    every: Int64 = np.arange(len(event_ids), dtype=np.int64)
    among = _read_among(inner, meta, len(event_ids))
    state.hold(read_only_columns(columns), event_ids.take(every).to_pylist())
    state.among.update(among)


def _read_among(folder: Path, meta: Meta, count: int) -> dict[int, frozenset[tuple[str, str]]]:
    """Which labels live events are for, by row: what `_among` wrote, of *count* events."""
    try:
        said = msgspec.convert(meta.get("among", {}), dict[int, dict[str, str]], strict=False)
        found = {row: frozenset(read_labels(said[row], "among").items()) for row in said}
    except ValueError as error:  # msgspec's, and ours
        refuse(folder, f"the labels that events are for ({error})")
    if found and not 0 <= min(found) <= max(found) < count:
        refuse(folder, "the rows of events that are for some labels")
    return found


def _among(state: State, live: Int64) -> dict[str, dict[str, str]]:
    """Which labels live events are for that are not for all, by their position among *live*."""
    rows = enumerate(live.tolist() if state.among else ())
    return {str(at): dict(state.among[row]) for at, row in rows if row in state.among}


def _open_tags(path: Path, state: State, trust: Trust) -> None:
    """Let *state* have the owners and labels that were saved, if there were any."""
    if not (current(path) / TAGS).exists():
        return
    inner = inner_folder(path, TAGS)
    arrays, _ = read_arrays(inner, kind=TAGS, verify=trust.sums)
    sets, owners = (bundle_of(StringArrays, name, arrays) for name in ("sets", "owners"))
    count = len(state.subscribers.ids)
    for texts, name in ((sets, "set_code"), (owners, "owner_code")):
        refuse(inner, texts.fault(len(texts.start) - 1))
        codes = arrays[name]
        if len(codes) != count or not ((codes >= 0) & (codes < len(texts.start) - 1)).all():
            refuse(inner, "the codes of owners and labels")
    try:
        found = TagArrays(sets, owners, arrays["set_code"], arrays["owner_code"])
        state.tags = TagTable.opened(found)
    except (AttributeError, TypeError, ValueError) as error:
        refuse(inner, f"owners and labels ({error})")


def _trust(size: int, verify: bool | None) -> Trust:
    if verify is None:
        return Trust(sums=size <= DOUBTED, ranges=True, builds=size <= DOUBTED)
    return Trust(sums=verify, ranges=verify, builds=verify)


def read_path(path: Any) -> Path:
    """*path* as the path of a folder, checked."""
    try:
        given = local_folder(path, "path")
        if b"\0" in os.fsencode(given):
            raise FolderError(f"{describe(path)} names no folder: no path has a NUL in it")
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"expected the path of a folder, got {describe(path)}: {error}"
        ) from None
    return given
