"""Stream the Parquet files of FOLDER/in into the pipeline FOLDER/out on Spark, to be killed.

    python -m tests.programs.stream_history FOLDER [--at FAILPOINT] [--workers-at FAILPOINT]

Kills itself at the one failpoint, and has each Python worker kill itself at the other. All that
keeps a stream small happens within its few batches. Says on its output when it begins, and when
all files are read; then it has started once more, and found nothing to do.
"""

import os
import sys
from argparse import ArgumentParser
from datetime import timedelta
from functools import partialmethod
from pathlib import Path

from pyspark.sql import SparkSession

from stentor.demo.afternoon import KINDS
from stentor.pipeline.spark.sessions import session

SETTINGS = {
    "plan": "sharded",
    "shards": 2,
    "fold_after": 2,
    "merge_least": 40,
    "merge_share": 0.01,
    "compact_after": 2,
    "keep_manifests": 2,
    "retention": timedelta(0),
}
BEGUN, DONE = "begun", "done"


def stream(spark: SparkSession, folder: Path) -> None:
    """Read what is there, a file at a time."""
    # Only now, so that the failpoint is that of this process.
    from stentor.pipeline.stream.settings import StreamSettings
    from stentor.pipeline.stream.start import start
    from stentor.pipeline.tables.delta import DeltaTables

    DeltaTables.compact = partialmethod(DeltaTables.compact, checkpoint_every=3)
    files = str(folder / "in")
    schema = spark.read.parquet(files).schema
    records = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(files)
    for _ in range(2):
        query = start(
            None,
            None,
            folder / "out",
            records=records,
            schema=KINDS,
            order="seq",
            time="time",
            trigger={"availableNow": True},
            settings=StreamSettings(**SETTINGS),
        )
        print(BEGUN, flush=True)
        query.awaitTermination()


def main() -> None:
    """Run until everything is read, or something kills this process."""
    parser = ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--at", default="")
    parser.add_argument("--workers-at", default="")
    given = parser.parse_args()
    os.environ["STENTOR_FAILPOINT"] = given.workers_at  # what Java inherits, and workers of it
    spark = session("local[2,4]", name="stentor, to be killed", quick=True)
    assert "stentor.pipeline.commit.failpoints" not in sys.modules
    os.environ["STENTOR_FAILPOINT"] = given.at
    stream(spark, given.folder)
    print(DONE, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
