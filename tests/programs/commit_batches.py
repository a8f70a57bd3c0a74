"""Commit five batches in a folder, killed as `killed_runs` says."""

import uuid
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from stentor.pipeline.commit.housekeeping import remove_orphans, remove_unused
from stentor.pipeline.commit.manifests import Commits, Manifest, Segment, TableFile
from stentor.pipeline.storage.writers import lock_folder
from stentor.pipeline.tables.delta import DeltaTables
from stentor.pipeline.tables.files import TABLES, table_folder, table_schemas, write_file
from tests.programs.killed_runs import serve

BATCHES = 5
SCHEMAS = table_schemas(pa.struct([("price", pa.float64())]))
#: Those of a release whose tables had no user's order.
OLD_SCHEMAS = {
    name: schema.remove(schema.get_field_index("order")) for name, schema in SCHEMAS.items()
}
#: How long deliveries stay: those of two batches and a bit.
KEPT = timedelta(microseconds=45)


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
    time = 20 * batch + 20
    required = {"query": "q", "seq": batch, "time": time, "schema": {}, "index": "scan"}
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
    with lock_folder(path):
        commits = Commits(path)
        if not DeltaTable.is_deltatable(str(table_folder(path, "deliveries").local)):
            DeltaTables(path, OLD_SCHEMAS, retention=timedelta(0))
        tables = DeltaTables(path, SCHEMAS, retention=timedelta(0), keep={"deliveries": KEPT})
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
                remove_unused(path, manifest)
                commits.prune(2, through=batch)
        tables.compact(limit=3, checkpoint_every=2)  # whatever was killed before it was done


if __name__ == "__main__":
    rows("events", 0, 1)  # for what Arrow imports when it is first used
    serve(run)
