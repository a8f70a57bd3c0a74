"""A real HDFS on loopback: Hadoop's mini cluster, from pinned jars and those of PySpark."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stentor.errors import SettingsError
from tests.support.servers import PATIENCE, free_port

JARS = Path(__file__).with_name("hadoop.txt")
_SMALL = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """The address of one over *folder*; stopped at the end. Skipped where it cannot be had."""
    pytest.importorskip("pyspark", reason="NOT TESTED: HDFS, because PySpark is not installed")
    import pyspark

    from stentor.pipeline.spark.jars import fetched_jars
    from stentor.pipeline.spark.java import MISSING, find_java

    java = find_java()
    try:
        if java is None:
            raise SettingsError(MISSING)
        jars = fetched_jars(JARS)
    except SettingsError as error:
        if os.environ.get("STENTOR_REQUIRE_SPARK") == "1":
            raise
        pytest.skip(f"NOT TESTED: HDFS: {error}")
    spark_jars = Path(pyspark.__file__).with_name("jars") / "*"
    port, details = free_port(), folder / "details.json"
    command = [str(java), *_SMALL, f"-Dtest.build.data={folder}"]
    command += ["-cp", ":".join(map(str, [*jars, spark_jars]))]
    # With one copy of a block its writer asks too early whether it is there, and waits.
    command += ["org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "2"]
    command += ["-nnport", str(port), "-httpport", str(free_port())]
    command += ["-writeDetails", str(details), "-D", "dfs.replication=2"]
    log = folder / "hadoop.log"
    with log.open("wb") as output:
        cluster = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        end = time.monotonic() + 2 * PATIENCE
        while not details.exists():
            assert cluster.poll() is None, f"HDFS ended at once: {log.read_text()[-2000:]}"
            assert time.monotonic() < end, f"HDFS was not ready: {log.read_text()[-2000:]}"
            time.sleep(0.1)
        yield f"hdfs://127.0.0.1:{port}"
    finally:
        cluster.send_signal(signal.SIGKILL)  # nothing in it is worth a controlled shutdown
        cluster.wait(PATIENCE)
