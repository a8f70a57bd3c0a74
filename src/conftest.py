"""Documented examples are collected from the package, but those of the pipeline only with Spark."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("pyspark") else ["stentor/pipeline/*"]
