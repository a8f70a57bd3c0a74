"""Runs of words in the arena, by classes of sizes with a free list each.

A run's class is in the word before it. Sizes grow by a quarter or less from class to class, so that
a run is filled to nine tenths on average.
"""

from __future__ import annotations

from stentor._jit import inner_kernel, kernel_inline
from stentor.index.be_star_tree.layout import (
    LARGEST_LEAF,
    NONE,
    PENDING,
    TOP_CLASS,
    USED,
    BEStarTreeArrays,
)

#: Words that any one step may take beside the records that it copies.
SPARE_WORDS = 4096
#: Buckets that one step may add to the stack.
MOST_PENDING = 4
#: A free run so many classes larger (four times as large) is cut rather than left free.
MUCH_LARGER = 8


@kernel_inline
def size_of(run_class: int) -> int:
    """The words of a run of *run_class*, with the one before it."""
    return (4 + (run_class & 3)) << ((run_class >> 2) + 1)


@inner_kernel
def class_of(words: int) -> int:
    """The smallest class with *words* words and the one before them."""
    octave = 0
    while size_of(4 * octave + 4) <= words + 1:
        octave += 1
    found = 4 * octave
    while size_of(found) < words + 1:
        found += 1
    return found


@kernel_inline
def capacity_of_class(tree: BEStarTreeArrays, run: int) -> int:
    """The capacity of *run* in words."""
    return int(size_of(tree.word[run - 1]) - 1)


@inner_kernel
def has_capacity(tree: BEStarTreeArrays) -> bool:
    """Whether there is capacity for any one step in the arena and on the stack."""
    state = tree.state
    words = 3 * state[LARGEST_LEAF] + SPARE_WORDS
    return bool(
        state[USED] + words <= len(tree.word) and state[PENDING] + MOST_PENDING <= len(tree.pending)
    )


@inner_kernel
def take_run(tree: BEStarTreeArrays, words: int) -> int:
    """A run of *words* words; the caller has checked the capacity."""
    wanted = class_of(words)
    run = int(tree.free[wanted])
    if run != NONE:
        tree.free[wanted] = tree.word[run]
        return run
    for larger in range(wanted + MUCH_LARGER, tree.state[TOP_CLASS] + 1):
        if tree.free[larger] != NONE:
            return cut(tree, larger, wanted)
    start = int(tree.state[USED])
    tree.state[USED] = start + size_of(wanted)
    tree.word[start] = wanted
    return start + 1


@inner_kernel
def cut(tree: BEStarTreeArrays, larger: int, wanted: int) -> int:
    """A run of class *wanted* from the front of a free one; the rest becomes free runs."""
    run = int(tree.free[larger])
    tree.free[larger] = tree.word[run]
    tree.word[run - 1] = wanted
    start = run - 1 + size_of(wanted)
    left = size_of(larger) - size_of(wanted)
    piece = larger - 1
    while left >= size_of(0):
        while size_of(piece) > left:
            piece -= 1
        tree.word[start] = piece
        free_run(tree, start + 1)
        start += size_of(piece)
        left -= size_of(piece)
    return run


@inner_kernel
def free_run(tree: BEStarTreeArrays, run: int) -> None:
    """Add *run* to the free list of its class."""
    run_class = tree.word[run - 1]
    tree.word[run] = tree.free[run_class]
    tree.free[run_class] = run
    tree.state[TOP_CLASS] = max(tree.state[TOP_CLASS], run_class)


@kernel_inline
def copy_words(tree: BEStarTreeArrays, source: int, target: int, words: int) -> None:
    """Copy *words* words; the two do not overlap, or *target* comes first."""
    taken, given = tree.word[source : source + words], tree.word[target : target + words]
    for word in range(words):
        given[word] = taken[word]
