"""A Spark session with what Stentor needs, for programs and for commands."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from stentor.errors import SettingsError
from stentor.pipeline.spark.failures import java_ended
from stentor.pipeline.spark.java import MISSING, find_java, have_spark_use, quick_options

#: All cores of this machine; a task is tried four times, because its worker may have died.
LOCAL = "local[*,4]"

_LOGGING = Path(__file__).with_name("log4j2.properties")

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_JARS = "spark.jars"

_REUSE = "spark.python.worker.reuse"

_SETTINGS = {
    # A worker keeps the index that it opened for the next batch.
    _REUSE: "true",
    "spark.python.daemon.module": "stentor.pipeline.spark.daemon",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A timestamp without a zone is UTC, as it is in expressions and records.
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_LOCAL_SETTINGS = {
    # Each of the three log writes of a micro-batch takes 10 instead of 45 ms. Only where the
    # checkpoint is on a local file system, whose rename is atomic; not on object stores.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}


def session(
    master: str | None = None,
    *,
    name: str = "stentor",
    quick: bool = False,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The active Spark session, or a new one on *master* (by default all cores of this machine).

    *quick* is for short runs: the session starts in half the time and computes more slowly.
    *settings* are Spark's own, by their names, and come before those of Stentor. An active session
    is never changed: SettingsError where it runs under other *settings* or Stentor cannot use it.
    """
    given = dict(settings or {})
    if is_remote():
        raise of_connect("session")
    if SparkContext._active_spark_context is not None:
        return _checked(SparkSession.builder.getOrCreate(), master, given)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # Java runs: spark-submit has decided the rest
        builder = builder.master(master) if master else builder
    else:
        master = master or LOCAL
        builder = builder.master(master)
        given = _suitable(master, quick, given)
    for key, value in given.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def is_of_connect(spark: SparkSession) -> bool:
    """Whether *spark* is a client of Spark Connect, which has no way into Java."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def of_connect(what: str) -> SettingsError:
    """Why *what* is refused in a session of Spark Connect."""
    return SettingsError(
        f"stentor.pipeline.{what} cannot be used in a session of Spark Connect: it needs a driver "
        "of its own (a master, or spark-submit). match, build_snapshot and register_functions take "
        "the session as it is, in foreachBatch too"
    )


def _suitable(master: str, quick: bool, given: dict[str, str]) -> dict[str, str]:
    """*given* and all that it leaves open; the environment in which Java can start."""
    java = find_java()
    if java is None:
        raise SettingsError(MISSING)
    have_spark_use(java)
    suitable = dict(_SETTINGS)
    if master.startswith("local"):
        # A machine's own name may resolve to an address that it cannot reach.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        suitable |= _LOCAL_SETTINGS
    options = quick_options(java, pyspark.__version__) if quick else []
    if "SPARK_CONF_DIR" not in os.environ:
        options.append(f"-Dlog4j2.configurationFile={_LOGGING}")
    suitable |= given
    suitable[_JAVA_OPTIONS] = f"{shlex.join(options)} {given.get(_JAVA_OPTIONS, '')}".strip()
    return suitable


def _checked(active: SparkSession, master: str | None, given: dict[str, str]) -> SparkSession:
    """*active*, if it is what is wanted and what Stentor can work with."""
    context = active.sparkContext
    if master is not None and master != context.master:
        raise _stop_first(f"runs on {context.master}, not on {master}")
    for key, value in given.items():
        current = _current(active, key)
        is_ours = key == _JAVA_OPTIONS and current is not None and current.endswith(value)
        has_all = key == _JARS and set(value.split(",")) <= set((current or "").split(","))
        if current != value and not is_ours and not has_all:
            raise _stop_first(f"has {key} = {current}, not {value}")
    if _current(active, _REUSE) == "false":
        raise _stop_first(f"has {_REUSE} off: each batch would open the whole index again")
    python = shutil.which(context.pythonExec) or context.pythonExec
    is_chosen = "PYSPARK_PYTHON" in os.environ
    if not is_chosen and Path(python).parent != Path(sys.executable).parent:
        warnings.warn(
            f"the workers of the active Spark session run {python}, which may lack the packages "
            f"of {sys.executable}; set PYSPARK_PYTHON before the session is made",
            stacklevel=3,
        )
    return active


def _current(active: SparkSession, key: str) -> str | None:
    """The setting *key*, be it Spark's own default; None where it has none."""
    try:
        return active.conf.get(key)
    except PySparkException:
        return None


def _stop_first(problem: str) -> SettingsError:
    return SettingsError(
        f"the active Spark session {problem}; stop it (spark.stop()) and have "
        "stentor.pipeline.session() make one, or make it so yourself"
    )


#: Writes a stack trace for each stream that fails; a command says it in a sentence.
_LOUD: Final = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"


@contextmanager
def command_session(
    master: str | None = None,
    *,
    name: str,
    quick: bool = False,
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A session as `session` makes it, stopped at the end; one that was there before goes on."""
    is_guest = SparkContext._active_spark_context is not None
    spark = session(master, name=name, quick=quick, settings=settings)
    if is_guest:
        yield spark
        return
    _silence(spark)
    try:
        yield spark
    finally:
        _stop(spark)


def _stop(spark: SparkSession) -> None:
    try:
        spark.stop()
    except (Py4JError, ConnectionError, EOFError) as error:
        if java_ended(error) is None:  # else there is nothing to stop, and the command says so
            raise


def _silence(spark: SparkSession) -> None:
    log4j = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    log4j.core.config.Configurator.setLevel(_LOUD, log4j.Level.OFF)
    # Both write a stack trace for each thread that meets a connection which is cut.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    server: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda request, client: None
