"""Bad records: written to the rejected table with reason and text, counted, judged.

`RejectedWriter` writes them in the workers. On the driver `rejected_rows` groups them by reason,
and `FirstRecords` sees whether most of a source's first records are bad: then a setting is to
blame, not the records. A batch is judged before it is committed, so that nothing is lost where the
stream stops: started again with what was corrected, it takes in the same records.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from stentor.encoding.columns import Int64
from stentor.errors import RecordError
from stentor.pipeline.commit.manifests import TableFile
from stentor.pipeline.storage.folder import StreamFolder
from stentor.pipeline.stream.settings import FIRST_RECORDS, FrameSettings
from stentor.pipeline.tables.files import TIME, table_folder, write_files
from stentor.wire.cells.layout import one_array, plain_array, validity
from stentor.wire.cells.point import is_list
from stentor.wire.cells.string import is_string, not_utf8
from stentor.wire.events import NESTED
from stentor.wire.rejected import MOST_RAW, raw_text
from stentor.wire.tables import take_rows

if TYPE_CHECKING:
    from stentor.pipeline.stream.micro_batch import MicroBatchResult

#: Of a longer string no more than this is ever shown: a character has at most four bytes.
_MOST_BYTES = 4 * (MOST_RAW + 1)
#: What other columns say of a record, or is not its own.
_NOT_SHOWN = ("source", "offset", "problem", "raw", "batch_time", "frame", "stored")
#: Records that become texts at a time.
BLOCK_ROWS = 4_096
#: Bytes of texts that wait before `flush_if_large` writes a file.
FLUSH_BYTES = 32_000_000
#: What of a reason is the record's own: what is between quotes, and numbers.
_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|[-+]?\d[\w.:+-]*")
#: Fewer records than this are no reason to stop.
LEAST_FIRST = 10
#: So many reasons are shown, each with an example.
MOST_EXAMPLES = 3


class _Waiting(NamedTuple):
    """Rows of one table that came one by one."""

    table: Any
    rows: list[int]
    reasons: list[str]


class RejectedWriter:
    """Rejected records of one task: texts in Arrow's memory until they are in a file.

    Cost: 2 µs for a record of five fields, in blocks of `BLOCK_ROWS`.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}  # by the identity of the table
        self._waiting_rows = 0
        self._blocks: list[Any] = []
        self._bytes = 0
        self._files: list[TableFile] = []

    def add_texts(self, table: Any, reasons: Sequence[str]) -> None:
        """Take in all rows of *table*, which has the records' own texts in the column `raw`."""
        for start in range(0, table.num_rows, BLOCK_ROWS):
            block = table.slice(start, BLOCK_ROWS)
            raw = readable(block["raw"]).to_pylist()
            texts = pa.array([raw_text(one or "") for one in raw], pa.string())
            self._hold(block, texts, reasons[start : start + BLOCK_ROWS])

    def add_rows(self, table: Any, rows: Int64, reasons: Sequence[str]) -> None:
        """Take in *rows*, in ascending order, of a *table* of canonical records."""
        taken = take_rows(table, rows)
        for start in range(0, len(rows), BLOCK_ROWS):
            block = taken.slice(start, BLOCK_ROWS)
            self._hold(block, record_texts(block), reasons[start : start + BLOCK_ROWS])

    def add_row(self, table: Any, row: int, reason: str) -> None:
        """Take in one row, together with others of the same *table* that come before and after."""
        waiting = self._waiting.get(id(table))
        if waiting is None:
            waiting = self._waiting[id(table)] = _Waiting(table, [], [])
        waiting.rows.append(row)
        waiting.reasons.append(reason)
        self._waiting_rows += 1
        if self._waiting_rows >= BLOCK_ROWS:
            self._add_waiting()

    def flush_if_large(self, path: StreamFolder, batch: int, time: int) -> None:
        """Write a file if much waits: to be called every few thousand records."""
        if self._bytes >= FLUSH_BYTES:
            self._write(path, batch, time)

    def write(self, path: StreamFolder, batch: int, time: int) -> list[TableFile]:
        """Write what is left; all files, none where nothing was rejected."""
        self._add_waiting()
        self._write(path, batch, time)
        return self._files

    def _add_waiting(self) -> None:
        waiting, self._waiting, self._waiting_rows = self._waiting, {}, 0
        for table, rows, reasons in waiting.values():
            order = np.argsort(rows, kind="stable")
            ascending = np.array(rows, np.int64)[order]
            self.add_rows(table, ascending, [reasons[position] for position in order.tolist()])

    def _hold(self, block: Any, texts: Any, reasons: Sequence[str]) -> None:
        has_offset = "offset" in block.column_names
        rows = pa.table(
            {
                "reason": pa.array(map(raw_text, reasons), pa.string()),
                "record": texts,
                "source": readable(block["source"]),
                "offset": block["offset"] if has_offset else pa.nulls(len(texts), pa.int64()),
            }
        )
        if "order" in block.column_names and block["order"].null_count < len(texts):
            rows = rows.append_column("order", block["order"])
        self._blocks.append(rows)
        self._bytes += rows.nbytes

    def _write(self, path: StreamFolder, batch: int, time: int) -> None:
        if not self._blocks:
            return
        table = pa.concat_tables(self._blocks, promote_options="default")
        times = pa.repeat(pa.scalar(time, pa.int64()), table.num_rows).cast(TIME)
        self._files += write_files(path, "rejected", table.append_column("time", times), batch)
        self._blocks, self._bytes = [], 0


class Reason(NamedTuple):
    """Why records were rejected, in words that fit all of them, and one of them."""

    words: str
    records: int
    example: str
    record: str


class RejectedRows(NamedTuple):
    """Rejected records of a batch: how many of each source, and why, the commonest reason first."""

    sources: Counter[str]
    reasons: list[Reason]


def rejected_rows(
    path: StreamFolder,
    files: Sequence[TableFile],
    most: int = 100_000,
    sources: Collection[str] | None = None,
) -> RejectedRows:
    """What *files* of the table hold, of these *sources* where some are named.

    Of reasons only the first *most* records are looked at.
    """
    folder = table_folder(path, "rejected")
    found: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    first: dict[str, tuple[str, str]] = {}
    for file in files:
        rows = pq.read_table(folder.file(file.name), columns=["reason", "record", "source"])
        if sources is not None:
            rows = rows.filter(pc.is_in(rows["source"], pa.array(sources, pa.string())))
        for one in rows["source"].value_counts().to_pylist():
            found[one["values"] or ""] += one["counts"]
        rows = rows.slice(0, max(0, most - counts.total()))
        for position, reason in enumerate(rows["reason"].to_pylist()):
            words = _VARYING.sub("…", reason)
            counts[words] += 1
            if words not in first:
                first[words] = reason, rows["record"][position].as_py() or ""
    reasons = [Reason(words, count, *first[words]) for words, count in counts.most_common()]
    return RejectedRows(found, reasons)


class FirstRecords:
    """The first records of each frame of a stream: how many, and how many were rejected."""

    def __init__(
        self, frames: Sequence[FrameSettings], before: Mapping[str, tuple[int, int]]
    ) -> None:
        """Those of *frames*; *before* are the counts that the last manifest has."""
        self._frames = frames
        self.counts = dict(before)
        self._sources: dict[str, int] = {}  # the frame of each

    @property
    def is_open(self) -> bool:
        """Whether there is a frame of which too few records are known."""
        return any(self._is_open(frame) for frame in self._frames)

    def _is_open(self, frame: FrameSettings) -> bool:
        return self.counts.get(frame.name, (0, 0))[0] < FIRST_RECORDS

    def judge(self, path: StreamFolder, result: MicroBatchResult) -> None:
        """Take in *result*, which is not committed yet; a RecordError where too much is bad."""
        if not self.is_open:
            return
        self._sources |= result.sources
        files = result.files.get("rejected", ())
        bad: Counter[int] = Counter()
        for source, count in rejected_rows(path, files, 0).sources.items():
            if len(self._frames) == 1:
                bad[0] += count
            elif source in self._sources:  # else it waited since an earlier start
                bad[self._sources[source]] += count
        counts = dict(self.counts)
        for number, frame in enumerate(self._frames):
            if not self._is_open(frame):
                continue
            seen, rejected = self.counts.get(frame.name, (0, 0))
            seen, rejected = seen + result.seen[number], rejected + bad[number]
            if seen >= LEAST_FIRST and rejected > frame.most_rejected * seen and bad[number]:
                own = {source for source, of in self._sources.items() if of == number}
                raise RecordError(_too_many_rejected(path, result, frame, seen, rejected, own))
            if seen:
                counts[frame.name] = seen, rejected
        self.counts = counts


def _too_many_rejected(
    path: StreamFolder,
    result: MicroBatchResult,
    frame: FrameSettings,
    seen: int,
    rejected: int,
    own: set[str],
) -> str:
    reasons = rejected_rows(path, result.files["rejected"], sources=own or None).reasons
    lines = [
        f"  {one.records:,} because: {one.example}\n    for example: {one.record[:200]}"
        for one in reasons[:MOST_EXAMPLES]
    ]
    return (
        f"{frame.name}: {rejected:,} of the first {seen:,} records are rejected "
        f"({rejected / seen:.0%}), so a setting is likely to be wrong, a column or a type\n"
        + "\n".join(lines)
        + "\nNothing of this batch is committed: correct the settings or the source and start "
        "again. To go on all the same, and have them in the table 'rejected', say most_rejected = "
        "1.0 in its [[source]], or start(…, most_rejected=1.0)"
    )


def record_texts(table: Any) -> Any:
    """Each row of *table* as JSON, cut like all rejected records: an Arrow array of strings.

    What is null is left out. Attributes are beside the fields, where no name is taken twice.

    Cost: 1.5 µs for a row of five fields, and a Python object for each of its cells: give it some
    thousand rows at a time.
    """
    shown = {name: one_array(table[name]) for name in table.column_names if name not in _NOT_SHOWN}
    nested = shown.get(NESTED)
    if nested is not None and types.is_struct(nested.type):
        names = [field.name for field in nested.type]
        if shown.keys().isdisjoint(names):
            del shown[NESTED]
            shown |= dict(zip(names, nested.flatten(), strict=True))
    encode = msgspec.json.Encoder().encode
    texts = [raw_text(encode(row)) for row in _objects(shown, table.num_rows)]
    return pa.array(texts, pa.string())


def readable(strings: Any) -> Any:
    """*strings* as far as they are ever shown, with U+FFFD for what is not UTF-8."""
    array = one_array(strings)
    is_long = (pc.max(pc.binary_length(array)).as_py() or 0) > _MOST_BYTES
    if not is_long and not not_utf8(array).any():
        return array.cast(pa.string())
    cut = pc.binary_slice(array.cast(pa.large_binary()), 0, _MOST_BYTES)
    texts = [None if one is None else one.decode("utf-8", "replace") for one in cut.to_pylist()]
    return pa.array(texts, pa.string())


def _objects(columns: dict[str, Any], rows: int) -> list[dict[str, Any]]:
    """The cells of each row by name, without those that are null."""
    given = {name: one for name, one in columns.items() if one.null_count < len(one)}
    if not given:
        return [{} for _ in range(rows)]
    names = list(given)
    return [
        {name: cell for name, cell in zip(names, cells, strict=True) if cell is not None}
        for cells in zip(*map(_cells, given.values()), strict=True)
    ]


def _cells(array: Any) -> Sequence[Any]:
    """The cells of *array* as JSON has them."""
    array = plain_array(array)
    of = array.type
    if is_string(of):
        return _list(readable(array))
    if types.is_timestamp(of) or types.is_date(of):
        return _moments(array)
    if types.is_floating(of):
        return _numbers(array)
    if types.is_map(of):
        return _maps(array)
    if types.is_struct(of):
        fields = [field.name for field in of]
        found = _objects(dict(zip(fields, array.flatten(), strict=True)), len(array))
        return _where(validity(array), found)
    if is_list(of):
        items = iter(_cells(array.flatten()))
        sizes = _list(pc.list_value_length(array))
        return [None if size is None else list(islice(items, size)) for size in sizes]
    return _list(array)


def _moments(array: Any) -> Sequence[Any]:
    """Instants in the form that records have them in, whatever the year."""
    of = array.type
    if types.is_date32(of):
        days = np.asarray(array.cast(pa.int32()).fill_null(0)).astype("datetime64[D]")
        return _where(validity(array), np.datetime_as_string(days).tolist())
    unit = "ms" if types.is_date64(of) else of.unit
    moments = np.asarray(array.cast(pa.int64()).fill_null(0)).astype(f"datetime64[{unit}]")
    seconds = moments.astype("datetime64[s]")
    shown = seconds if np.array_equal(seconds, moments) else moments
    return _where(validity(array), np.datetime_as_string(shown, timezone="UTC").tolist())


def _numbers(array: Any) -> Sequence[Any]:
    """Numbers; JSON has no form for some, and they may be what is wrong with the record."""
    numbers = _list(array)
    if pc.all(pc.is_finite(array)).as_py():
        return numbers
    return [one if one is None or np.isfinite(one) else str(one) for one in numbers]


def _maps(array: Any) -> Sequence[Any]:
    starts = array.offsets.to_numpy()
    entries = slice(int(starts[0]), int(starts[-1]))
    pairs = list(zip(_cells(array.keys[entries]), _cells(array.items[entries]), strict=True))
    starts = (starts - starts[0]).tolist()
    # Weights are packed as an empty map where there are none, and no change has the field.
    found = [dict(pairs[start:stop]) or None for start, stop in pairwise(starts)]
    return _where(validity(array), found)


def _where(is_there: Any, cells: Sequence[Any]) -> Sequence[Any]:
    if is_there.all():
        return cells
    return [cell if there else None for cell, there in zip(cells, is_there, strict=True)]


def _list(array: Any) -> list[Any]:
    cells: list[Any] = array.to_pylist()
    return cells
