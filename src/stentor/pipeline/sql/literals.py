"""The arguments of functions that are literals, which Spark hands over as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc

from stentor.pipeline.sql.kernels import Booleans


def rows_by_text(column: Any) -> Iterator[tuple[str, Booleans]]:
    """Each text of *column*, an Arrow array of strings, and the rows that have it.

    Cost: one pass for each text. A literal is one text in all rows.
    """
    for text in column.unique().drop_null().to_pylist():
        yield text, pc.equal(column, text).fill_null(False).to_numpy(zero_copy_only=False)
