"""Where Spark's Python workers are forked from: all is imported and compiled once, and shared.

A worker that imports NumPy, Numba, Arrow and pandas and loads the kernels by itself holds some
110 MB of its own and takes half a second; one that is forked from here shares these pages with all
others. Set by `session` as `spark.python.daemon.module`.
"""

from __future__ import annotations

import gc
import os
from contextlib import suppress

import pyspark.worker  # noqa: F401
from pyspark import daemon

# What the steps of a micro-batch and of a batch match need.
import stentor.pipeline.batch.matching
import stentor.pipeline.stream.match_events
import stentor.pipeline.stream.plan_changes  # noqa: F401
from stentor.engine import Engine
from stentor.engine.cold import WAIT

with suppress(ImportError):
    import pandas  # noqa: F401 - PySpark's workers import it where it is installed


def _load_kernels() -> None:
    """Have the kernels compiled, or taken from the cache, before there is anybody to wait."""
    import pyarrow as pa

    os.environ[WAIT] = "1"
    engine = Engine("scan layered", clock=None, schema={"text": "string", "loc": "point"})
    engine.subscribe("a", "has_all(text, 'word') AND ST_DWithin(loc, here(), 9)", at=(0, 0))
    events = pa.table({"id": ["e"], "text": ["word"], "loc": [[0.0, 0.0]]})
    engine.publish_batch(events)
    engine.publish_batch(events, top=1)
    engine.publish({"id": "live", "text": "word"}, until=9, time=0)
    engine.move("a", (1, 1), time=1)


if __name__ == "__main__":
    _load_kernels()
    gc.collect()
    gc.freeze()  # or the collector would write to every page that is shared
    daemon.manager()
