"""Where Spark's Python workers are forked from: everything is imported once, and shared.

A worker that imports NumPy, Numba, Arrow and the kernels by itself holds some 90 MB of its own and
takes half a second; one that is forked from here shares these pages with all others. Set by
`session` as `spark.python.daemon.module`.
"""

from __future__ import annotations

from pyspark import daemon

# What the steps of a micro-batch and of a batch match need.
import stentor.pipeline.batch.matching
import stentor.pipeline.stream.matching
import stentor.pipeline.stream.reading
import stentor.pipeline.stream.settling  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
