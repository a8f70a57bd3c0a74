"""Stentor on Apache Spark: match whole DataFrames, or events and subscriptions as they stream.

    >>> from stentor.pipeline import match, session
    >>> spark = session()                                             # doctest: +SKIP
    >>> match(events, subscriptions).show()                           # doctest: +SKIP

Nothing is imported until it is used, and Spark not before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stentor.pipeline import tables
    from stentor.pipeline.batch.match import build_snapshot, match
    from stentor.pipeline.spark.sessions import session
    from stentor.pipeline.sql.functions import for_spark, register_functions
    from stentor.pipeline.stream.settings import StreamSettings
    from stentor.pipeline.stream.start import start

_HOMES = {
    "StreamSettings": "stream.settings",
    "build_snapshot": "batch.match",
    "for_spark": "sql.functions",
    "match": "batch.match",
    "register_functions": "sql.functions",
    "session": "spark.sessions",
    "start": "stream.start",
}

__all__ = [
    "StreamSettings",
    "build_snapshot",
    "for_spark",
    "match",
    "register_functions",
    "session",
    "start",
    "tables",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        if name == "tables":
            return import_module(f"{__name__}.tables")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name in ("deltalake", "pyspark"):
            raise ImportError(
                f"stentor.pipeline needs {error.name}, which is not installed: "
                "pip install 'stentor[spark]'"
            ) from error
        raise
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
