"""`make cluster`: one job on a standalone cluster of two workers, and on this machine alone.

Replicated and sharded; in each run on the cluster an executor is killed in the middle of a batch.
Fails unless the tables are those of `local[2]`, and of one engine fed record by record.
"""

import signal
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread

from pyspark.sql import SparkSession

from stentor.demo.afternoon import KINDS
from stentor.pipeline import StreamSettings, session, start
from tests.cluster.standalone import HOST, Cluster, standalone_cluster
from tests.programs.afternoons import (
    Tables,
    afternoon,
    batches_of,
    expected_tables,
    fits_columns,
    found_tables,
    write_parquet,
)

BATCHES = 6
KILLED_IN = 2
MOST_SECONDS = 300
PLANS = {"replicated": {"plan": "replicated"}, "sharded in 3": {"plan": "sharded", "shards": 3}}
#: So small that all of it happens within a few batches.
UPKEEP = {"fold_after": 2, "merge_least": 40, "merge_share": 0.1, "compact_after": 2}
ON_CLUSTER = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class ExecutorKiller:
    """Kills an executor while a job of the batch *KILLED_IN* runs."""

    def __init__(self, spark: SparkSession, cluster: Cluster) -> None:
        self._spark = spark
        self._cluster = cluster
        self.killed: list[int] = []

    def after(self, batch: int) -> None:
        """To be told of each batch."""
        if batch == KILLED_IN - 1:
            Thread(target=self._kill, daemon=True).start()

    def _kill(self) -> None:
        tracker = self._spark.sparkContext.statusTracker()
        while not tracker.getActiveJobsIds():
            time.sleep(0.002)
        self.killed.append(self._cluster.kill_an_executor())


def stream(
    spark: SparkSession, folder: Path, path: Path, plan: str, killer: ExecutorKiller | None = None
) -> Tables:
    """Stream all files, one a batch; what the tables say then."""
    files = str(folder / "in")
    schema = spark.read.parquet(files).schema
    records = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(files)
    query = start(
        None,
        None,
        path,
        records=records,
        schema=KINDS,
        order="seq",
        time="time",
        trigger={"availableNow": True},
        listeners=[lambda progress: killer.after(progress.batch)] if killer is not None else [],
        **PLANS[plan],
        settings=StreamSettings(**UPKEEP),
    )
    query.awaitTermination()
    return found_tables(path)


def main() -> int:
    """Run everything, print what was compared; 0 where all of it is equal."""
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.alarm(MOST_SECONDS)
    with tempfile.TemporaryDirectory(prefix="stentor-cluster-") as temporary:
        folder = Path(temporary)
        records = [record for record in afternoon(seed=6) if fits_columns(record)]
        batches = batches_of(records, BATCHES)
        write_parquet(folder / "in", batches)
        print(f"{len(records):,} records in {BATCHES} batches", flush=True)
        found = {"one engine": expected_tables(batches)}
        spark = session("local[2,4]", name="stentor cluster, alone", quick=True)
        for plan in PLANS:
            found[f"local[2], {plan}"] = stream(spark, folder, folder / f"local {plan}", plan)
        spark.stop()
        with standalone_cluster(folder) as cluster:
            print(f"a master and two workers at {cluster.master}", flush=True)
            spark = session(cluster.master, name="stentor cluster", settings=ON_CLUSTER)
            for plan in PLANS:
                killer = ExecutorKiller(spark, cluster)
                path = folder / f"cluster {plan}"
                found[f"cluster, {plan}"] = stream(spark, folder, path, plan, killer)
                print(f"{plan}: killed executor {killer.killed} in batch {KILLED_IN}", flush=True)
                assert killer.killed, "no executor was killed: there is nothing to compare"
            spark.stop()
    return _report(found)


def _report(found: dict[str, Tables]) -> int:
    expected = found["one engine"]
    names = Tables._fields[:4]
    print(f"\n{'':28}{''.join(f'{name:>15}' for name in names)}")
    for run, tables in found.items():
        rows = "".join(f"{getattr(tables, name).total():>15,}" for name in names)
        print(f"{run:28}{rows}   {'equal' if tables == expected else 'DIFFERENT'}")
    return int(any(tables != expected for tables in found.values()))


def _out_of_time(*_: object) -> None:
    raise SystemExit(f"not done after {MOST_SECONDS} seconds; everything is stopped")


if __name__ == "__main__":
    sys.exit(main())
