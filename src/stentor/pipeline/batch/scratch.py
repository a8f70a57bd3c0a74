"""Folders for what lives as long as the session: seen by driver and workers, removed at the end."""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from stentor.errors import SettingsError


def new_scratch(spark: SparkSession, given: str | os.PathLike[str] | None) -> Path:
    """The name of a fresh folder in *given*, or in `spark.local.dir`; nothing is made yet.

    On a cluster it must be a folder that all machines see, so there it has to be given.
    """
    master = spark.conf.get("spark.master", None) or "local"
    if given is None and not master.startswith("local"):
        raise SettingsError(
            "on a cluster say scratch=, a folder that the driver and all workers see; "
            "or build a snapshot and match with that"
        )
    local = spark.conf.get("spark.local.dir", None) or tempfile.gettempdir()
    parent = Path(local.split(",")[0]) if given is None else Path(given)
    return _of_this_process(parent.resolve()) / secrets.token_hex(8)


@cache
def _of_this_process(parent: Path) -> Path:
    folder = parent / f"stentor-{os.getpid()}-{secrets.token_hex(4)}"
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
