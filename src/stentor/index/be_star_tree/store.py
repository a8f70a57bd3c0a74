"""The tree's arrays, and room for what kernels do to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from stentor.encoding.columns import (
    EventColumns,
    Float64,
    Int32,
    Int64,
    SubscriptionColumns,
    event_count,
)
from stentor.encoding.ragged import events_between
from stentor.encoding.readonly import read_only
from stentor.errors import CapacityError
from stentor.index.be_star_tree.adapting import (
    find_recycled,
    measure_extensions,
    measure_losses,
)
from stentor.index.be_star_tree.bulk import (
    choose_dimensions,
    count_dimensions,
    estimate_waste,
    file_together,
)
from stentor.index.be_star_tree.filing import SPARE_WORDS, file_alternatives, plant
from stentor.index.be_star_tree.layout import (
    AXES,
    BUCKETS,
    CLASSES,
    DIMENSIONS,
    LARGEST_LEAF,
    LEAF_COUNT,
    NONE,
    PENDING,
    RECORDS,
    STATES,
    SUMMARY,
    UNCOVERED,
    USED,
    Desk,
    Float32,
    Knobs,
    Reading,
    Tree,
)
from stentor.index.be_star_tree.matching import Spread, spread_for, values_of
from stentor.index.be_star_tree.ranking import BINS
from stentor.index.be_star_tree.removing import take_out
from stentor.index.storage import Arrays

#: Places in the pool are int32 where they stand beside another number.
_MOST_WORDS = int(np.iinfo(np.int32).max)
_FIRST_WORDS = 2 * SPARE_WORDS
_FIRST_PENDING = 256
#: Alternatives and events from which the waste of each dimension is estimated.
_SAMPLED, _HISTORY = 4000, 128


class TreeStore:
    """A tree, and all that filing takes."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs = knobs
        self.tree = Tree(
            *_pool(_FIRST_WORDS + 3 * knobs.width),
            free=np.full(CLASSES, NONE, np.int64),
            state=np.zeros(STATES, np.int64),
            pending=np.empty(_FIRST_PENDING, np.int64),
            home=np.zeros(0, np.int32),
            proved=np.zeros(0, np.uint8),
            dimension_of=np.zeros(0, np.int32),
            key_of=np.zeros(0, np.int32),
            waste=np.zeros(0),
            extension=np.zeros(0),
        )
        self.desk = desk_for(2 * knobs.capacity, 0)
        plant(self.tree, knobs.width, knobs.capacity)
        self._reading: Reading | None = None
        self.is_mapped = False

    @classmethod
    def over(cls, knobs: Knobs, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """A tree that can only be read, of which nothing is copied."""
        store = cls(knobs)
        word = np.asarray(arrays["word"])
        views = word, word.view(np.float64), word.view(np.float32), word.view(np.int32)
        store._reading = Reading(*map(read_only, (*views, arrays["dimension_of"])))
        store.tree = store.tree._replace(
            state=arrays["state"], key_of=arrays["key_of"], proved=arrays["proved"]
        )
        store.is_mapped = True
        return store

    def arrays(self) -> Arrays:
        """What `over` needs."""
        tree = self.tree
        return {
            "word": self.reading.word[: tree.state[USED]],
            "dimension_of": self.reading.dimension_of,
            "key_of": tree.key_of,
            "proved": tree.proved,
            "state": tree.state,
        }

    @property
    def keys(self) -> int:
        """Axes of attributes that there is room for: no dimension's number is higher."""
        return len(self.reading.dimension_of)

    def holds(self, alternatives: Int64) -> npt.NDArray[np.bool_]:
        """Which of *alternatives* are in the tree."""
        held: npt.NDArray[np.bool_] = self.tree.home[alternatives] != NONE
        return held

    @property
    def reading(self) -> Reading:
        """What questions take; made anew after the arrays have grown."""
        if self._reading is None:
            self._reading = Reading(
                *(read_only(getattr(self.tree, name)) for name in Reading._fields)
            )
        return self._reading

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
        pool, rest = self.reading.word, self.tree[4:]
        return pool.nbytes + sum(array.nbytes for array in (*rest, *self.desk))

    @property
    def is_proved(self) -> bool:
        """Whether every record has all that its alternative asks."""
        return not self.tree.state[UNCOVERED]

    # Changes.

    def file(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """File *alternatives* one by one."""
        self._know(columns, alternatives)

        def go_on(start: int) -> int:
            return file_alternatives(columns, alternatives, start, self.tree, self.desk, self.knobs)

        self._to_the_end(go_on, len(alternatives))

    def file_all(
        self, columns: SubscriptionColumns, alternatives: Int64, history: EventColumns | None
    ) -> None:
        """File *alternatives* into an empty tree, all at once (BE*-B)."""
        self._know(columns, alternatives)
        few = read_only(alternatives[:: max(1, len(alternatives) // _SAMPLED)])
        count_dimensions(columns, few, self.tree, self.desk, self.knobs)
        if history is not None:
            self._estimate(columns, few, history)
        chosen = np.empty(len(alternatives), np.int64)
        choose_dimensions(columns, alternatives, self.tree, self.desk, self.knobs, chosen)
        self.desk.tally[:] = 0
        # A p-node for a handful of records is not worth its while.
        is_small = np.bincount(chosen + 1) <= self.knobs.capacity // 2
        chosen[is_small[chosen + 1]] = NONE
        order = np.argsort(np.where(chosen == NONE, len(self.tree.key_of), chosen), kind="stable")
        alternatives, chosen = read_only(alternatives[order]), read_only(chosen[order])

        def go_on(start: int) -> int:
            return file_together(
                columns, alternatives, chosen, start, self.tree, self.desk, self.knobs
            )

        self._to_the_end(go_on, len(alternatives))

    def take_out(self, alternatives: Int64) -> None:
        """Take the records of *alternatives* out, where they are in the tree."""

        def go_on(start: int) -> int:
            return take_out(alternatives, start, self.tree, self.desk, self.knobs)

        self._to_the_end(go_on, len(alternatives))

    def measure(self, events: EventColumns, *, apart: bool) -> None:
        """Learn from *events* what filing costs and, for siblings *apart*, how wide events are."""
        values = values_of(events)
        measure_losses(self.tree, values, self.spread(), self.desk)
        if apart:
            measure_extensions(self.tree, values, self.desk)

    def recycled(self) -> Int64:
        """The alternatives beneath p-nodes whose rank has fallen."""
        found = np.empty(self.records, np.int64)
        count = find_recycled(self.tree, self.spread(), self.knobs, found)
        return found[:count]

    def spread(self) -> Spread:
        """Scratch for one event at a time."""
        # A little more than is needed now, so that it may serve again.
        return spread_for(self.keys, self.buckets + self.buckets // 4)

    # Room.

    def _estimate(self, columns: SubscriptionColumns, few: Int64, history: EventColumns) -> None:
        """Learn from *history* and a *few* alternatives what filing under a dimension wastes."""
        tally = self.desk.tally.copy()
        events = events_between(history, 0, min(_HISTORY, event_count(history)))
        estimate_waste(
            columns, few, self.tree, values_of(events), self.spread(), self.desk, self.knobs
        )
        self.desk.tally[:] = tally

    def _to_the_end(self, go_on: Callable[[int], int], count: int) -> None:
        """Call *go_on* until all *count* are done, with more room each time it stopped."""
        done = go_on(0)
        while done < count or self.tree.state[PENDING]:
            self._grow(count - done)
            done = go_on(done)

    def _know(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """Make room for what *alternatives* bring: their own places, their attributes."""
        tree = self.tree
        count = len(columns.predicate_start) - 1
        if count > len(tree.home):
            room = max(count, len(tree.home) * 5 // 4)
            self._replace(home=_longer(tree.home, room, NONE), proved=_longer(tree.proved, room, 0))
        if not len(alternatives):
            return
        first, last = alternatives.min(), alternatives.max()
        asked = columns.attribute[
            columns.predicate_start[first] : columns.predicate_start[last + 1]
        ]
        keys = AXES * (1 + int(asked.max(initial=-1)))
        if keys > len(tree.dimension_of):
            keys = max(keys, 2 * len(tree.dimension_of))
            self._replace(
                dimension_of=_longer(tree.dimension_of, keys, NONE),
                key_of=_longer(tree.key_of, keys, NONE),
                waste=_longer(tree.waste, keys, 0),
                extension=_longer(tree.extension, keys, 0),
            )
            self.desk = desk_for(len(self.desk.at), keys)

    def _grow(self, left: int) -> None:
        """Make room for one more step at least, and for about *left* more records."""
        tree, state = self.tree, self.tree.state
        if state[PENDING]:
            count = int(tree.word[tree.pending[state[PENDING] - 1] + LEAF_COUNT])
            if count >= len(self.desk.at):
                self.desk = desk_for(2 * count, len(tree.dimension_of))
        if 2 * int(state[PENDING]) + 8 > len(tree.pending):
            self._replace(pending=_longer(tree.pending, 2 * len(tree.pending), 0))
        used = int(state[USED])
        needed = used + 3 * int(state[LARGEST_LEAF]) + SPARE_WORDS
        if needed > len(tree.word):
            filed = max(1, int(state[RECORDS]))
            about = int(1.05 * left * used / filed) if filed > 1000 else 0
            words = max(needed + min(about, 8 * used), len(tree.word) * 5 // 4)
            if needed > _MOST_WORDS:
                raise CapacityError(
                    f"the tree needs {needed:,} words; at most {_MOST_WORDS:,} can be numbered: "
                    "split the subscriptions over several indexes"
                )
            word, number, half, code = _pool(min(words, _MOST_WORDS))
            word[:used] = tree.word[:used]
            self._replace(word=word, number=number, half=half, code=code)

    def _replace(self, **arrays: npt.NDArray[Any]) -> None:
        self.tree = self.tree._replace(**arrays)
        self._reading = None


def _pool(words: int) -> tuple[Int64, Float64, Float32, Int32]:
    """A pool of so many *words*, in its four views."""
    word = np.empty(words, np.int64)
    return word, word.view(np.float64), word.view(np.float32), word.view(np.int32)


def desk_for(records: int, dimensions: int) -> Desk:
    """Room for the records of a leaf, and for so many *dimensions*."""

    def integers() -> Int64:
        return np.empty(records, np.int64)

    def numbers() -> Float64:
        return np.empty(records + 1)

    return Desk(
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
    )


def _longer(array: npt.NDArray[Any], length: int, fill: int) -> npt.NDArray[Any]:
    """*array* in more room, with *fill* behind it."""
    longer = np.full(length, fill, array.dtype)
    longer[: len(array)] = array
    return longer
