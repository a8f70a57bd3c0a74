"""The tree's arrays: grown, and changed by kernels that stop where capacity is missing.

Beside them the events that its losses are measured with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int64,
    SubscriptionColumns,
    UInt8,
    event_count,
    read_only,
)
from stentor.encoding.ragged import concatenate, events_between, take
from stentor.errors import CapacityError
from stentor.index.arena import spacious, touched
from stentor.index.be_star_tree.build import (
    average_weights,
    choose_dimensions,
    count_dimensions,
    estimate_loss,
    insert_together,
)
from stentor.index.be_star_tree.insert import insert_alternatives, new_root
from stentor.index.be_star_tree.layout import (
    AXES,
    BUCKETS,
    CLASSES,
    DIMENSIONS,
    LARGEST_LEAF,
    NODE_CAPACITY,
    NODE_FIELDS,
    NONE,
    PENDING,
    RECORDS,
    SPARE_WORDS,
    STAGED_CAPACITY,
    STATES,
    SUMMARY,
    UNBALANCED,
    UNCOVERED,
    USED,
    BEKernelSettings,
    BEReadArrays,
    BEStarTreeArrays,
    SplitScratch,
)
from stentor.index.be_star_tree.match import BEMatchScratch, match_scratch, values_of
from stentor.index.be_star_tree.ranking import BINS
from stentor.index.be_star_tree.recycling import find_recycled, measure_extensions, measure_losses
from stentor.index.be_star_tree.remove import remove_records
from stentor.index.storage.arrays import Arrays

#: Positions in the arena are int32 where they share a word with another number.
_MOST_WORDS = int(np.iinfo(np.int32).max)
_FIRST_WORDS = 2 * SPARE_WORDS
_FIRST_PENDING = 256
#: Alternatives and events from which the waste of each dimension is estimated.
_SAMPLED, _HISTORY = 4000, 128
#: Matched events for each one that is kept.
EVENTS_PER_SAMPLE = 64
#: Events with at most so many values are kept as they are; of others, a copy of a few.
FEW_VALUES = 256


_Array = npt.NDArray[Any]
_Views = tuple[_Array, _Array, _Array, _Array]


class BEStarTreeState:
    """A tree, and the scratch of its changes."""

    def __init__(self, settings: BEKernelSettings) -> None:
        self.settings = settings
        self.tree = BEStarTreeArrays(
            *_arena(_FIRST_WORDS + 3 * settings.width),
            free=np.full(CLASSES, NONE, np.int64),
            state=np.zeros(STATES, np.int64),
            pending=np.empty(_FIRST_PENDING, np.int64),
            home=np.zeros(0, np.int32),
            offset=np.zeros(0, np.int32),
            proved=np.zeros(0, np.uint8),
            dimension_of=np.zeros(0, np.int32),
            key_of=np.zeros(0, np.int32),
            waste=np.zeros(0),
            extension=np.zeros(0),
            usual=np.zeros(0),
            heaviest=np.zeros(0),
        )
        self.scratch = split_scratch(2 * settings.capacity, 0, 0)
        new_root(self.tree, settings.width, settings.capacity)
        self._reading: BEReadArrays | None = None
        self._proved: tuple[UInt8, UInt8] | None = None
        self.is_mapped = False

    @classmethod
    def over(cls, settings: BEKernelSettings, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """A read-only tree over saved *arrays*, which are not copied."""
        store = cls(settings)
        word = np.asarray(arrays["word"])
        dimension_of = arrays["dimension_of"]
        store._reading = BEReadArrays(*(read_only(one) for one in (*_views(word), dimension_of)))
        store.tree = store.tree._replace(
            **{name: arrays[name] for name in ("state", "key_of", "proved", "usual", "heaviest")}
        )
        store.is_mapped = True
        return store

    def arrays(self) -> Arrays:
        """The arrays that `over` needs."""
        tree = self.tree
        return {
            "word": self.reading.word[: tree.state[USED]],
            "dimension_of": self.reading.dimension_of,
            "key_of": tree.key_of,
            "proved": tree.proved,
            "usual": tree.usual,
            "heaviest": tree.heaviest,
            "state": tree.state,
        }

    @property
    def keys(self) -> int:
        """The capacity in axes of attributes: no dimension's number is higher."""
        return len(self.reading.dimension_of)

    def holds(self, alternatives: Int64) -> npt.NDArray[np.bool_]:
        """Which of *alternatives* are in the tree."""
        is_present: npt.NDArray[np.bool_] = self.tree.home[alternatives] != NONE
        return is_present

    @property
    def reading(self) -> BEReadArrays:
        """The arrays for matching; made again after they have grown."""
        if self._reading is None:
            self._reading = BEReadArrays(
                *(read_only(getattr(self.tree, name)) for name in BEReadArrays._fields)
            )
        return self._reading

    @property
    def proved(self) -> UInt8:
        """Which alternatives hold where all of their boxes are met; made again as `reading` is."""
        if self._proved is None or self._proved[0] is not self.tree.proved:
            self._proved = self.tree.proved, read_only(self.tree.proved)
        return self._proved[1]

    @property
    def dimensions(self) -> int:
        return int(self.tree.state[DIMENSIONS])

    @property
    def buckets(self) -> int:
        return int(self.tree.state[BUCKETS])

    @property
    def records(self) -> int:
        return int(self.tree.state[RECORDS])

    @property
    def nbytes(self) -> int:
        arena = touched(self.reading.word, int(self.tree.state[USED]))
        return arena + sum(array.nbytes for array in (*self.tree[4:], *self.scratch))

    @property
    def is_proved(self) -> bool:
        """Whether the boxes of every record are all that its alternative tests."""
        return not self.tree.state[UNCOVERED]

    # Changes.

    def insert(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """Insert *alternatives* one by one."""
        self._reserve_attributes(columns, alternatives)
        if not self.records:
            self._average(columns, alternatives)

        def go_on(start: int) -> int:
            return insert_alternatives(
                columns, alternatives, start, self.tree, self.scratch, self.settings
            )

        self.run_to_end(go_on, len(alternatives))

    def build(
        self, columns: SubscriptionColumns, alternatives: Int64, history: EventColumns | None
    ) -> None:
        """Insert *alternatives* into an empty tree, all at once (BE*-B)."""
        self._reserve_attributes(columns, alternatives)
        few = self._average(columns, alternatives)
        count_dimensions(columns, few, self.tree, self.scratch, self.settings)
        if history is not None:
            self._estimate(columns, few, history)
        chosen = np.empty(len(alternatives), np.int64)
        choose_dimensions(columns, alternatives, self.tree, self.scratch, self.settings, chosen)
        self.scratch.tally[:] = 0
        # A p-node for a few records costs more than it gains.
        is_small = np.bincount(chosen + 1) <= self.settings.capacity // 2
        chosen[is_small[chosen + 1]] = NONE
        order = np.argsort(np.where(chosen == NONE, len(self.tree.key_of), chosen), kind="stable")
        alternatives, chosen = read_only(alternatives[order]), read_only(chosen[order])

        def go_on(start: int) -> int:
            return insert_together(
                columns, alternatives, chosen, start, self.tree, self.scratch, self.settings
            )

        self.run_to_end(go_on, len(alternatives))

    def remove(self, alternatives: Int64) -> None:
        """Remove the records of *alternatives* that are in the tree."""

        def go_on(start: int) -> int:
            return remove_records(alternatives, start, self.tree, self.scratch, self.settings)

        self.run_to_end(go_on, len(alternatives))

    def measure(self, events: EventColumns, *, apart: bool) -> None:
        """Measure losses by *events* and, for siblings *apart*, how wide ranges of events are."""
        values = values_of(events)
        measure_losses(self.tree, values, self.spread(), self.scratch)
        if apart:
            measure_extensions(self.tree, values, self.scratch)

    def recycled(self) -> Int64:
        """The alternatives beneath p-nodes whose rank has fallen."""
        found = np.empty(self.records, np.int64)
        count = find_recycled(self.tree, self.spread(), self.settings, found)
        return found[:count]

    def spread(self) -> BEMatchScratch:
        """Scratch for one event at a time."""
        # A little more than is needed now, so that it can be used again.
        return match_scratch(self.keys, self.buckets + self.buckets // 4)

    # Learning and growing.

    def _average(self, columns: SubscriptionColumns, alternatives: Int64) -> Int64:
        """Learn usual weights from a few of *alternatives*, the first to be inserted; those few."""
        few: Int64 = read_only(alternatives[:: max(1, len(alternatives) // _SAMPLED)])
        average_weights(columns, few, self.tree, self.scratch, self.settings)
        return few

    def _estimate(self, columns: SubscriptionColumns, few: Int64, history: EventColumns) -> None:
        """Learn from *history* and a *few* alternatives what inserting under a dimension wastes."""
        tally = self.scratch.tally.copy()
        events = events_between(history, 0, min(_HISTORY, event_count(history)))
        estimate_loss(
            columns, few, self.tree, values_of(events), self.spread(), self.scratch, self.settings
        )
        self.scratch.tally[:] = tally

    def run_to_end(self, go_on: Callable[[int], int], count: int) -> None:
        """Call *go_on* until all *count* are done, and grow each time it stopped."""
        done = go_on(0)
        state = self.tree.state
        while done < count or state[PENDING] or state[UNBALANCED] != NONE:
            self._grow(count - done)
            done = go_on(done)

    def _reserve_attributes(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """Make capacity for the homes of *alternatives*, and for their attributes."""
        tree = self.tree
        count = len(columns.predicate_start) - 1
        if count > len(tree.home):
            capacity = max(count, len(tree.home) * 5 // 4)
            self._replace(
                home=_longer(tree.home, capacity, NONE),
                offset=_longer(tree.offset, capacity, 0),
                proved=_longer(tree.proved, capacity, 0),
            )
        if not len(alternatives):
            return
        first, last = alternatives.min(), alternatives.max()
        attributes = columns.attribute[
            columns.predicate_start[first] : columns.predicate_start[last + 1]
        ]
        keys = AXES * (1 + int(attributes.max(initial=-1)))
        if keys > len(tree.dimension_of):
            keys = max(keys, 2 * len(tree.dimension_of))
            self._replace(
                dimension_of=_longer(tree.dimension_of, keys, NONE),
                key_of=_longer(tree.key_of, keys, NONE),
                waste=_longer(tree.waste, keys, 0),
                extension=_longer(tree.extension, keys, 0),
                usual=_longer(tree.usual, keys, 0),
                heaviest=_longer(tree.heaviest, keys, 0),
            )
            self.scratch = split_scratch(len(self.scratch.at), keys, len(self.scratch.nodes))

    def _grow(self, left: int) -> None:
        """Make capacity for one more step at least, and for about *left* more records."""
        tree, state = self.tree, self.tree.state
        records, nodes = int(state[STAGED_CAPACITY]), NODE_FIELDS * (int(state[NODE_CAPACITY]) + 1)
        if records >= len(self.scratch.at):
            self._replace_scratch(records + records // 2, len(self.scratch.nodes))
        if nodes > len(self.scratch.nodes):
            self._replace_scratch(len(self.scratch.at), 2 * nodes)
        if 2 * int(state[PENDING]) + 8 > len(tree.pending):
            self._replace(pending=_longer(tree.pending, 2 * len(tree.pending), 0))
        used = int(state[USED])
        needed = used + 3 * int(state[LARGEST_LEAF]) + SPARE_WORDS
        if needed > len(tree.word):
            present = max(1, int(state[RECORDS]))
            about = int(1.05 * left * used / present) if present > 1000 else 0
            words = max(needed + min(about, 8 * used), len(tree.word) * 5 // 4)
            if needed > _MOST_WORDS:
                raise CapacityError(
                    f"the tree needs {needed:,} words; at most {_MOST_WORDS:,} can be numbered: "
                    "split the subscriptions over several indexes"
                )
            arena = _arena(min(words, _MOST_WORDS))
            arena[0][:used] = tree.word[:used]
            self._replace(**dict(zip(BEStarTreeArrays._fields[: len(arena)], arena, strict=True)))

    def _replace_scratch(self, records: int, nodes: int) -> None:
        self.scratch = split_scratch(records, len(self.tree.dimension_of), nodes)

    def _replace(self, **arrays: npt.NDArray[Any]) -> None:
        self.tree = self.tree._replace(**arrays)
        self._reading = None


class EventWindow:
    """The last so many events of a sample.

    Readers add to it while no writer reads it; an event that a thread loses does not matter.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._parts: list[EventColumns] = []
        self._count = 0  # events in the parts
        self._seen = 0

    @property
    def is_full(self) -> bool:
        """Whether there is enough to measure from."""
        return self._count >= self._size > 0

    def is_due(self, events: int) -> bool:
        """Whether some of the next *events* would be kept; else they are counted."""
        if not self._size or self._seen + events >= EVENTS_PER_SAMPLE:
            return bool(self._size)
        self._seen += events
        return False

    def add(self, events: EventColumns) -> None:
        """Keep some of *events*. Cost: a copy for one in so many."""
        self._seen += event_count(events)
        if self._seen < EVENTS_PER_SAMPLE or not self._size:
            return
        self._seen = 0
        if len(events.attribute) > FEW_VALUES:
            events = take(events, np.arange(0, event_count(events), EVENTS_PER_SAMPLE))
        self._parts.append(events)
        del self._parts[: -self._size]
        self._count = sum(map(event_count, self._parts))

    @property
    def events(self) -> EventColumns | None:
        """The events that were kept; None where there are none."""
        # What is kept as it is may be a part of larger columns.
        own = [take(one, np.arange(event_count(one))) for one in self._parts]
        return concatenate(own) if own else None

    def clear(self) -> None:
        """Drop the events that were kept."""
        self._parts = []
        self._count = 0


def _arena(words: int) -> _Views:
    """An arena of so many *words* or far more, in its views."""
    return _views(spacious(words, np.int64)[:_MOST_WORDS])


def _views(word: Int64) -> _Views:
    return (
        word,
        word.view(np.float64),
        word.view(np.float32),
        word.view(np.int32),
    )


def split_scratch(records: int, dimensions: int, nodes: int = 0) -> SplitScratch:
    """Scratch for *records* of a leaf, so many *dimensions*, and fields of *nodes*."""

    def integers() -> Int64:
        return np.empty(records, np.int64)

    def numbers() -> Float64:
        return np.empty(records + 1)

    return SplitScratch(
        integers(),
        integers(),
        numbers(),
        numbers(),
        integers(),
        integers(),
        integers(),
        numbers(),
        numbers(),
        numbers(),
        np.zeros(dimensions, np.int64),
        np.empty(dimensions, np.int64),
        np.empty(SUMMARY),
        np.empty(BINS),
        np.empty(nodes, np.int64),
    )


def _longer(array: npt.NDArray[Any], length: int, fill: int) -> npt.NDArray[Any]:
    """*array* with a new *length*, the rest set to *fill*."""
    longer = np.full(length, fill, array.dtype)
    longer[: len(array)] = array
    return longer
