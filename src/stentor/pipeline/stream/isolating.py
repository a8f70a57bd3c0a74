"""Records that make a step fail, found among those that do not: they are rejected, and it goes on.

What a record can be blamed for was checked when it was read. This is for what nobody thought of: a
stream that is started again would meet the same record, and end again, for good.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from stentor.encoding.columns import Int64
from stentor.errors import FolderError

Result = TypeVar("Result")

#: Where more records than this fail, or so many and all of them, it is not the records.
MOST_ISOLATED, ALL_OF = 1_000, 100
#: What no record is to blame for.
OF_THE_WORLD = (FolderError, OSError, MemoryError)

_LOG = logging.getLogger(__name__)


def may_be_of_a_record(error: BaseException) -> bool:
    """Whether some record may be to blame for *error*, which a step raised here or in a worker."""
    kind = type(error)
    if kind.__module__.startswith(("pyspark", "py4j")):  # else Spark's own, or it was stopped
        return kind.__name__ == "PythonException"
    return not isinstance(error, OF_THE_WORLD)


class Failed(NamedTuple):
    """A record that fails by itself: its position among those that were tried, and why."""

    position: int
    reason: str


def isolated(
    count: int, attempt: Callable[[Int64], Result]
) -> tuple[list[tuple[Int64, Result]], list[Failed]]:
    """What *attempt* gives for *count* records, and which of them it fails on.

    It is tried with all of them, given their positions; where it raises, with each half. The
    results come with the positions that they are of.
    Cost: one attempt where nothing fails, else about 2·log2(count) for each record that does.
    """
    done: list[tuple[Int64, Result]] = []
    failed: list[Failed] = []
    waiting: list[Int64] = [np.arange(count)]
    while waiting:
        some = waiting.pop()
        try:
            done.append((some, attempt(some)))
        except OF_THE_WORLD:
            raise
        except Exception as error:
            if len(some) > 1:
                half = len(some) // 2
                waiting += [some[half:], some[:half]]
                continue
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            _LOG.warning("a record makes a step fail, and is rejected: %s", reason)
            failed += [Failed(int(position), reason) for position in some]
            if len(failed) > MOST_ISOLATED or len(failed) == count >= ALL_OF:
                raise
    return done, failed
