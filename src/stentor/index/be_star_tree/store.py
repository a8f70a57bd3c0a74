"""The tree's arrays, and room for what kernels do to them."""

from __future__ import annotations

import numpy as np

from stentor.encoding.columns import Int64, SubscriptionColumns
from stentor.encoding.readonly import read_only
from stentor.errors import CapacityError
from stentor.index.be_star_tree.filing import SPARE_WORDS, file_alternatives, plant
from stentor.index.be_star_tree.layout import (
    AXES,
    BUCKETS,
    CLASSES,
    DESK,
    DIMENSIONS,
    LARGEST_LEAF,
    LEAF_COUNT,
    NONE,
    PENDING,
    RECORDS,
    STATES,
    SUMMARY,
    USED,
    Desk,
    Knobs,
    Reading,
    Tree,
)
from stentor.index.be_star_tree.ranking import BINS

#: Places in the pool are int32 where they stand beside another number.
_MOST_WORDS = int(np.iinfo(np.int32).max)
_FIRST_WORDS = 2 * SPARE_WORDS
_FIRST_PENDING = 256


class TreeStore:
    """A tree, and all that filing takes."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs = knobs
        self._tree = Tree(
            *_pool(_FIRST_WORDS + 3 * knobs.width),
            free=np.full(CLASSES, NONE, np.int64),
            state=np.zeros(STATES, np.int64),
            pending=np.empty(_FIRST_PENDING, np.int64),
            home=np.zeros(0, np.int32),
            dimension_of=np.zeros(0, np.int32),
            key_of=np.zeros(0, np.int32),
            waste=np.zeros(0),
            extension=np.zeros(0),
        )
        self._desk = _desk(2 * knobs.capacity, 0)
        plant(self._tree, knobs.width, knobs.capacity)
        self._reading: Reading | None = None

    @property
    def reading(self) -> Reading:
        """What questions take; made anew after the arrays have grown."""
        if self._reading is None:
            self._reading = Reading(*(read_only(getattr(self._tree, name)) for name in Reading._fields))
        return self._reading

    @property
    def dimensions(self) -> int:
        return int(self._tree.state[DIMENSIONS])

    @property
    def buckets(self) -> int:
        return int(self._tree.state[BUCKETS])

    @property
    def records(self) -> int:
        return int(self._tree.state[RECORDS])

    @property
    def nbytes(self) -> int:
        pool, rest = self._tree[0], self._tree[4:]
        return pool.nbytes + sum(array.nbytes for array in (*rest, *self._desk))

    def file(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """File *alternatives* of *columns* one by one."""
        self._know(columns, alternatives)
        done = 0
        while True:
            done = file_alternatives(columns, alternatives, done, self._tree, self._desk, self.knobs)
            if done == len(alternatives) and self._tree.state[PENDING] == 0:
                return
            self._grow(len(alternatives) - done)

    def _know(self, columns: SubscriptionColumns, alternatives: Int64) -> None:
        """Make room for what *alternatives* bring: their own places, their attributes."""
        tree = self._tree
        count = len(columns.predicate_start) - 1
        if count > len(tree.home):
            home = np.full(max(count, len(tree.home) * 5 // 4), NONE, np.int32)
            home[: len(tree.home)] = tree.home
            self._replace(home=home)
        if not len(alternatives):
            return
        first, last = alternatives.min(), alternatives.max()
        asked = columns.attribute[columns.predicate_start[first] : columns.predicate_start[last + 1]]
        keys = AXES * (1 + int(asked.max(initial=-1)))
        if keys > len(tree.dimension_of):
            keys = max(keys, 2 * len(tree.dimension_of))
            self._replace(
                dimension_of=_longer(tree.dimension_of, keys, NONE),
                key_of=_longer(tree.key_of, keys, NONE),
                waste=_longer(tree.waste, keys, 0),
                extension=_longer(tree.extension, keys, 0),
            )
            self._desk = _desk(len(self._desk.at), keys)

    def _grow(self, left: int) -> None:
        """Make room for one more step at least, and for about *left* more records."""
        tree, state = self._tree, self._tree.state
        if state[PENDING]:
            count = int(tree.word[tree.pending[state[PENDING] - 1] + LEAF_COUNT])
            if count >= len(self._desk.at):
                self._desk = _desk(2 * count, len(tree.dimension_of))
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
                    f"the tree needs {needed:,} words, and at most {_MOST_WORDS:,} can be numbered; "
                    "split the subscriptions over several indexes"
                )
            word, number, half, code = _pool(min(words, _MOST_WORDS))
            word[:used] = tree.word[:used]
            self._replace(word=word, number=number, half=half, code=code)

    def _replace(self, **arrays: np.ndarray) -> None:
        self._tree = self._tree._replace(**arrays)
        self._reading = None


def _pool(words: int):
    word = np.empty(words, np.int64)
    return word, word.view(np.float64), word.view(np.float32), word.view(np.int32)


def _desk(records: int, dimensions: int) -> Desk:
    def integers() -> Int64:
        return np.empty(records, np.int64)

    def numbers():
        return np.empty(records + 1)

    return Desk(
        integers(), integers(), numbers(), numbers(), integers(), integers(), integers(),
        numbers(), numbers(), numbers(),
        np.zeros(dimensions, np.int64), np.empty(dimensions, np.int64),
        np.empty(SUMMARY), np.empty(BINS),
    )


def _longer(array, length: int, fill):
    longer = np.full(length, fill, array.dtype)
    longer[: len(array)] = array
    return longer
