"""Commit five batches in a folder, killed at failpoints and started again until they are done.

Reads lines from its input, each a folder and failpoints to be killed at, one run after the other
(`/tmp/x manifest-linked unused-removed:2`), and then runs to the end in that folder. Writes for
each line which of the runs were killed. Each run is a fork of this process, so that the imports
are paid once.
"""

import importlib
import json
import os
import signal
import sys
import uuid
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from stentor.pipeline import failpoints
from stentor.pipeline.commits import Commits, Manifest, Segment, TableFile
from stentor.pipeline.folder_lock import hold
from stentor.pipeline.removal import remove_orphans, remove_unused
from stentor.pipeline.table_files import TABLES, table_schemas, write_file
from stentor.pipeline.tables import DeltaTables

BATCHES = 5
SCHEMAS = table_schemas(pa.struct([("price", pa.float64())]))


def rows(table: str, first: int, count: int) -> pa.Table:
    """Rows of *table*, each with its own number in every column."""
    numbers = list(range(first, first + count))
    columns = {
        field.name: pa.array(
            [{"price": n} for n in numbers] if pa.types.is_struct(field.type) else numbers
        ).cast(field.type)
        for field in SCHEMAS[table]
        if field.name != "batch"
    }
    return pa.table(columns)


def new_manifest(batch: int, **fields: object) -> Manifest:
    """A manifest that says little beside *fields*."""
    required = {"query": "q", "seq": batch, "time": batch, "schema": {}, "index": "scan"}
    return Manifest(**{"batch": batch, "shards": 1, **required, **fields})


def write_batch(path: Path, batch: int) -> dict[str, list[TableFile]]:
    """Two files of each table, except that `rejected` gets some in every other batch only."""
    return {
        table: [write_file(path, table, rows(table, 20 * batch + n, 10), batch) for n in (0, 10)]
        for table in TABLES
        if table != "rejected" or batch % 2
    }


def run(path: Path) -> None:
    """What a pipeline does from its start to its fifth batch."""
    with hold(path):
        commits = Commits(path)
        tables = DeltaTables(path, SCHEMAS, retention=timedelta(0))
        tables.roll_forward(commits.since(-1))
        remove_orphans(path, commits, tables)
        last = commits.last()
        for batch in range(last.batch + 1 if last else 0, BATCHES):
            segment = path / "segments" / f"{batch}-{uuid.uuid4().hex}"
            segment.mkdir(parents=True)
            (segment / "rows").write_text("rows")
            manifest = new_manifest(
                batch,
                files=write_batch(path, batch),
                segments=[Segment(segment.name, batch, batch, 1, 4)],
            )
            commits.commit(manifest)
            tables.roll_forward([manifest])
            if batch % 2:
                tables.compact(limit=3, checkpoint_every=2)
                remove_unused(path, manifest, spare=())
                commits.prune(2, through=batch)


def forked(path: Path, failpoint: str) -> bool:
    """Run in a child process; whether it was killed."""
    child = os.fork()
    if not child:
        os.environ["STENTOR_FAILPOINT"] = failpoint
        importlib.reload(failpoints)
        os.fsync = lambda _: None  # a kill loses nothing that was written
        run(path)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == signal.SIGKILL
    if status:
        raise SystemExit(f"a run in {path} failed")
    return False


if __name__ == "__main__":
    rows("events", 0, 1)  # for what Arrow imports when it is first used
    for line in sys.stdin:
        folder, *points = line.split()
        print(json.dumps([forked(Path(folder), point) for point in [*points, ""]]), flush=True)
