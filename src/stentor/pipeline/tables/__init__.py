"""The tables of a pipeline: `read` gives one as a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stentor.pipeline.tables.delta import read

__all__ = ["read"]


def __getattr__(name: str) -> Any:
    # Workers write files of tables and need no more than that: deltalake is not for them.
    if name == "read":
        from stentor.pipeline.tables.delta import read

        return read
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
