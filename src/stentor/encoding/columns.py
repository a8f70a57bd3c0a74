"""The columns: what is left of subscriptions and events when an index looks at them.

Offsets + values throughout (the layout of Arrow lists): the children of row `i` are
`start[i]:start[i + 1]`. Every array has one dtype, is C-contiguous and read-only (`sealed`), so
that fresh and memory-mapped arrays share one compiled kernel.

    SubscriptionColumns                        EventColumns
    subscription ─▶ alternatives ─▶ predicates   event ─▶ values (attribute, low, high, string)
                      predicate ─▶ pairs         event ─▶ terms  (hash, bytes)
                                 └▶ strings      event ─▶ weights (attribute, weight)
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]

Int32 = npt.NDArray[np.int32]

Int64 = npt.NDArray[np.int64]

UInt8 = npt.NDArray[np.uint8]

UInt64 = npt.NDArray[np.uint64]


# Marks of strings.
INNER, LAST = 0, 1  # KEYWORDS: whether the term ends its group

CLOSED, OPEN, UNBOUNDED = 0, 1, 2  # STRING_INTERVAL: what the end is


#: The row of a value that is no string.
NO_STRING = -1


class SubscriptionColumns(NamedTuple):
    """Subscriptions → alternatives → predicates, and what the predicates refer to."""

    alternative_start: Int64  # (subscriptions + 1,)
    predicate_start: Int64  # (alternatives + 1,)
    kind: UInt8  # (predicates,) `kinds.PredicateKind`, NEGATED or not
    attribute: Int32  # (predicates,) codes of the schema
    low: Float64  # (predicates,) a hull: no value outside low … high can satisfy it
    high: Float64  # (predicates,)
    weight: Float64  # (predicates,)
    operand_start: Int32  # (predicates,) a slice of the pairs or of the strings, by kind
    operand_stop: Int32  # (predicates,)
    pair_low: Float64  # (pairs,)
    pair_high: Float64  # (pairs,)
    string_hash: UInt64  # (strings,)
    string_mark: UInt8  # (strings,)
    string_start: Int64  # (strings + 1,)
    string_bytes: UInt8  # (bytes,)
    position: Float64  # (2 × subscriptions,) x, y; NaN where there is none
    until: Int64  # (subscriptions,) microseconds; NEVER where there is no end


class EventColumns(NamedTuple):
    """Events → values, terms and weights."""

    value_start: Int64  # (events + 1,)
    attribute: Int32  # (values,) codes, ascending; one of several values: each of them a row
    low: Float64  # (values,) number, low end of a range, prefix of a string, x of a point
    high: Float64  # (values,) number, high end of a range, prefix of a string, y of a point
    string: Int32  # (values,) row of the string or NO_STRING
    string_hash: UInt64  # (strings,)
    string_start: Int64  # (strings + 1,)
    string_bytes: UInt8  # (bytes,)
    term_start: Int64  # (events + 1,)
    term_hash: UInt64  # (terms,) with their attribute; an empty one: `choices.py`
    term_byte_start: Int64  # (terms,)
    term_byte_stop: Int64  # (terms,)
    term_bytes: UInt8  # (bytes,)
    weight_start: Int64  # (events + 1,)
    weight_attribute: Int32  # (weights,)
    weight: Float64  # (weights,)
    until: Int64  # (events,) microseconds; NEVER where it is not kept
    time: Int64  # (events,) logical time when it came
    seq: Int64  # (events,) position in the order of records


Columns = TypeVar("Columns", SubscriptionColumns, EventColumns)

_DTYPES = {
    kind: {name: get_args(get_args(hint)[1])[0] for name, hint in get_type_hints(kind).items()}
    for kind in (SubscriptionColumns, EventColumns)
}


def dtypes(kind: type[Columns]) -> dict[str, Any]:
    """The dtype of each array of *kind*, as it is declared."""
    return _DTYPES[kind]


def read_only_columns(columns: Columns) -> Columns:
    """*columns* as plain read-only arrays of the declared dtypes: what kernels take.

    Copies only what is not of that form already.
    """
    arrays = []
    for dtype, given in zip(dtypes(type(columns)).values(), columns, strict=True):
        plain = np.ascontiguousarray(np.asarray(given), dtype=dtype).view()
        plain.flags.writeable = False
        arrays.append(plain)
    return type(columns)(*arrays)


def empty(kind: type[Columns]) -> Columns:
    """Columns of no row."""
    return read_only_columns(
        kind(
            *(
                np.zeros(1 if name.endswith("_start") and name not in _NOT_OFFSETS else 0, dtype)
                for name, dtype in dtypes(kind).items()
            )
        )
    )


_NOT_OFFSETS = {"operand_start", "term_byte_start"}


def subscription_count(columns: SubscriptionColumns) -> int:
    """How many subscriptions *columns* hold."""
    return len(columns.alternative_start) - 1


def event_count(columns: EventColumns) -> int:
    """How many events *columns* hold."""
    return len(columns.value_start) - 1


class MatchPairs(NamedTuple):
    """The matches of n events (or of n subscriptions with live events: `match_live`).

    Those of the i-th are `rows[starts[i]:starts[i + 1]]`, ascending, each once.
    """

    starts: Int64  # (n + 1,)
    rows: Int64  # (matches,)


class ScoredPairs(NamedTuple):
    """`MatchPairs` with a score for each pair."""

    starts: Int64  # (n + 1,)
    rows: Int64  # (matches,)
    scores: Float64  # (matches,)


Dtype = TypeVar("Dtype", bound=np.generic)

Bundle = TypeVar("Bundle", bound=tuple[Any, ...])


def read_only(array: npt.NDArray[Dtype]) -> npt.NDArray[Dtype]:
    """A plain read-only view of *array*."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def all_read_only(bundle: Bundle) -> Bundle:
    """A named tuple of read-only views of the arrays of *bundle*."""
    return type(bundle)(*map(read_only, bundle))
