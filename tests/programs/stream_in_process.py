"""Run a history through the batch loop without Spark, killed as `killed_runs` says.

All that keeps a stream small happens within its few batches: segments are folded, live events
joined, bases renewed, files merged, logs shortened, manifests pruned.
"""

import os
from datetime import timedelta
from functools import cache, partialmethod
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

import stentor
from stentor.model.record import Record
from stentor.pipeline.storage.folder import StreamFolder, stream_folder
from stentor.pipeline.tables.delta import DeltaTables
from tests.pipeline.in_process import Stream, canonical
from tests.programs.killed_runs import serve
from tests.soak.test_long_run import Source
from tests.support import grid

BATCHES = 8
RECORDS = 9  # of a batch
ENDED_AFTER = 3  # so many batches a run ends, and the next one goes on
SETTINGS = {
    "plan": "sharded",
    "shards": 2,
    "fold_after": 2,
    "merge_least": 8,
    "merge_share": 0.01,
    "compact_after": 2,
    "keep_manifests": 2,
    "retention": timedelta(0),
    "partition": "date",
    "keep_deliveries": timedelta(seconds=4),
}


@cache
def history() -> list[Record]:
    """Records of all kinds, some of which are to be refused."""
    return Source("a history for crashes").records(BATCHES * RECORDS)


def run(path: Path | str | StreamFolder) -> None:
    """What a stream does from its start to its last batch; and a start that finds it done."""
    DeltaTables.compact = partialmethod(DeltaTables.compact, checkpoint_every=3)
    records = canonical(history())
    folder = stream_folder(path, cache=os.environ.get("STENTOR_TEST_COPIES"))
    stream = Stream(folder, records.schema.field("attributes").type, **SETTINGS)
    while stream.next < BATCHES:
        start = stream.next * RECORDS
        cuts = [start, start + RECORDS // 2, start + RECORDS]
        stream.batch([records.take(pa.array(range(*cut))) for cut in pairwise(cuts)])
        if stream.next == ENDED_AFTER:
            end(stream)
            stream.start()
    end(stream)
    stream.start()
    stream.stop()


def end(stream: Stream) -> None:
    """Stop while bases are being built, however few changes came."""
    stream.loop._has_other_index = True
    stream.loop._begin_bases()
    stream.stop()


if __name__ == "__main__":
    # What is compiled and imported now is there in every fork.
    stentor.Engine(schema=grid.schema(), clock=None).step(history())
    canonical(history())
    serve(run)
