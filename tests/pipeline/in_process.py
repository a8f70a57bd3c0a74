"""A stream without Spark: the same steps and the same commits, run in this process."""

from __future__ import annotations

import copy
from collections import OrderedDict
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc

from stentor.model.record import Move, Publish, Subscribe, Unsubscribe, Update, Withdraw
from stentor.pipeline.commit.housekeeping import Housekeeping
from stentor.pipeline.commit.manifests import Commits
from stentor.pipeline.storage.folder import StreamFolder, stream_folder
from stentor.pipeline.storage.writers import lock_folder
from stentor.pipeline.stream import shards
from stentor.pipeline.stream.bases import BuildBasesStep
from stentor.pipeline.stream.batch_loop import BatchLoop
from stentor.pipeline.stream.settings import FrameSettings, StreamSettings
from stentor.pipeline.tables.delta import DeltaTables
from stentor.pipeline.tables.files import table_schemas
from stentor.wire.records import record_to_dict
from stentor.wire.table_writers import events_to_table
from tests.support import grid

_TIME = pa.timestamp("us", tz="UTC")


class InProcess:
    """Runs every task here and now; a batch is a list of partitions, Arrow tables each.

    A task meets the replicas of one of several workers: some of them lag behind, some have just
    been started.
    """

    slots = 2

    def __init__(self, seed=0):
        self._random = Random(seed)
        self._workers = [OrderedDict() for _ in range(3)]

    @contextmanager
    def _worker(self):
        driver, worker = shards._OPEN, self._random.choice(self._workers)
        if self._random.random() < 0.1:
            worker.clear()
        shards._OPEN = worker
        try:
            yield
        finally:
            shards._OPEN = driver

    query = "a query"
    now = 0
    plan = ""

    def plan_of(self, batch):
        return self.plan

    def batch_time(self, batch, records):
        times = [pc.max(part["batch_time"]).cast(pa.int64()).as_py() for part in records]
        self.now = max((time for time in times if time is not None), default=0)
        return self.now

    def clock(self):
        return self.now

    def read(self, records, step):
        return [step.read(number, iter(part.to_batches())) for number, part in enumerate(records)]

    def only(self, records, *, events):
        is_event = [pc.equal(part["op"], "publish") for part in records]
        chosen = is_event if events else [pc.invert(mask) for mask in is_event]
        return [part.filter(mask) for part, mask in zip(records, chosen, strict=True)]

    def publish(self, records, step):
        reports = []
        for part in records:
            with self._worker():
                reports.append(step.publish(iter(part.to_batches())))
        return reports

    def run(self, step, tasks, report):
        step = copy.deepcopy(step)
        reports = []
        for number in range(tasks):
            # Bases are built in a thread of their own, and with replicas of their own.
            with nullcontext() if isinstance(step, BuildBasesStep) else self._worker():
                reports.append(step.task(number))
        return reports

    run_beside = run

    def cancel_beside(self):
        """Nothing can be given up here."""


def canonical(records):
    """*records* of the model, in their order, as frames make them of any DataFrame."""
    events = [one.event for one in records if isinstance(one, Publish | Update)]
    table = events_to_table(events, grid.schema())
    names = [name for name in table.column_names if name in grid.KINDS]
    rows = [record_to_dict(one) for one in records]
    place = iter(range(len(events)))
    taken = [next(place) if isinstance(one, Publish | Update) else None for one in records]
    attributes = pa.StructArray.from_arrays(
        [table[name].combine_chunks().take(pa.array(taken, pa.int64())) for name in names],
        names=names,
    )
    return pa.table(
        {
            "op": pa.array([row["op"] for row in rows], pa.string()),
            "id": pa.array([row["id"] for row in rows], pa.string()),
            "order": pa.array(range(len(rows)), pa.int64()),
            "time": pa.array([one.time for one in records], pa.int64()).cast(_TIME),
            "until": pa.array([_until(one) for one in records], pa.int64()).cast(_TIME),
            "weights": pa.array(
                [list(row["weights"].items()) if row.get("weights") else None for row in rows],
                pa.map_(pa.string(), pa.float64()),
            ),
            "expression": pa.array([row.get("expression") for row in rows], pa.string()),
            "at": pa.array([row.get("at") for row in rows], pa.list_(pa.float64())),
            "attributes": attributes,
            "source": pa.array(["a test"] * len(rows), pa.string()),
            "offset": pa.array(range(len(rows)), pa.int64()),
            "problem": pa.nulls(len(rows), pa.string()),
            "raw": pa.nulls(len(rows), pa.string()),
            "batch_time": pa.array([0] * len(rows), pa.int64()).cast(_TIME),
        }
    )


def unread(lines, frame=1, source="a file", op="publish"):
    """*lines* of texts as frames hand them to the workers, in the columns that `canonical` has."""
    empty = canonical([]).schema
    count = len(lines)
    columns = {field.name: pa.nulls(count, field.type) for field in empty}
    raw = [line.encode() if isinstance(line, str) else line for line in lines]
    columns |= {
        "op": pa.array([op] * count, pa.string()),
        "source": pa.array([source] * count, pa.string()),
        "offset": pa.array(range(count), pa.int64()),
        "raw": pa.array(raw, pa.binary()).view(pa.string()),
        "batch_time": pa.array([0] * count, pa.int64()).cast(_TIME),
        "frame": pa.array([frame] * count, pa.int32()),
    }
    return pa.table(columns)


def _until(record):
    match record:
        case Publish(event) | Update(event):
            return event.until
        case Subscribe(subscription):
            return subscription.until
        case Move() | Unsubscribe() | Withdraw():
            return None


class Stream:
    """A stream over a folder, which can be stopped and started again at any time."""

    def __init__(
        self, path: Path | StreamFolder, attributes, *, runner=None, frames=(), **settings
    ) -> None:
        self.runner = runner or InProcess()
        self._path = stream_folder(path)
        self._attributes = attributes
        self._frames = frames or (FrameSettings(most_rejected=1.0),)  # histories are full of errors
        # The batches' own time is always 0 here, which records are ahead of.
        own = {"has_order": True, "has_time": True, "most_ahead": None}
        self._settings = StreamSettings(**{**own, **settings})
        self.progress = []
        self.start()

    def start(self) -> None:
        shards.forget()
        self._lock = lock_folder(self._path)
        has_dates = self._settings.partition is not None
        schemas = table_schemas(self._attributes, has_dates=has_dates)
        chosen = self._settings
        tables = DeltaTables(self._path, schemas, retention=chosen.retention, keep=chosen.keep)
        self._housekeeping = Housekeeping(self._path, tables, self._settings)
        self._housekeeping.recover()
        self.loop = BatchLoop(
            self.runner,
            self._housekeeping.path,
            grid.schema(),
            self._settings,
            self._housekeeping,
            {},
            [self.progress.append],
            self._frames,
        )
        last = Commits(self._path).last()
        self.next = 0 if last is None else last.spark_batch + 1

    def stop(self) -> None:
        self.loop.close()
        self._housekeeping.close()
        self._lock.release()

    def wait_for_bases(self) -> None:
        self.loop._builder.wait(timedelta(minutes=5))

    def batch(self, partitions) -> None:
        self.loop(partitions, self.next)
        self.next += 1
