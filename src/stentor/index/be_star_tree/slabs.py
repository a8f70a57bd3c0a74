"""Slabs of words in the pool, by classes of sizes with a list of free ones each.

A slab's class stands in the word before it. Sizes grow by a quarter or less from class to class,
so that a slab is filled to nine tenths on average.
"""

from __future__ import annotations

from stentor._jit import kernel_inline, kernel_part
from stentor.index.be_star_tree.layout import NONE, TOP_CLASS, USED, Tree

#: A free slab so many classes larger (four times as large) is cut up rather than left alone.
MUCH_LARGER = 8


@kernel_inline
def size_of(slab_class: int) -> int:
    """The words of a slab of *slab_class*, with the one before it."""
    return (4 + (slab_class & 3)) << ((slab_class >> 2) + 1)


@kernel_part
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
def room_of(tree: Tree, slab: int) -> int:
    """How many words fit into *slab*."""
    return int(size_of(tree.word[slab - 1]) - 1)


@kernel_part
def allocate(tree: Tree, words: int) -> int:
    """A slab for *words* words; the caller has seen to it that the pool has them."""
    wanted = class_of(words)
    slab = int(tree.free[wanted])
    if slab != NONE:
        tree.free[wanted] = tree.word[slab]
        return slab
    for larger in range(wanted + MUCH_LARGER, tree.state[TOP_CLASS] + 1):
        if tree.free[larger] != NONE:
            return cut(tree, larger, wanted)
    start = int(tree.state[USED])
    tree.state[USED] = start + size_of(wanted)
    tree.word[start] = wanted
    return start + 1


@kernel_part
def cut(tree: Tree, larger: int, wanted: int) -> int:
    """A slab of class *wanted* from the front of a free one; the rest becomes free slabs."""
    slab = int(tree.free[larger])
    tree.free[larger] = tree.word[slab]
    tree.word[slab - 1] = wanted
    start = slab - 1 + size_of(wanted)
    left = size_of(larger) - size_of(wanted)
    piece = larger - 1
    while left >= size_of(0):
        while size_of(piece) > left:
            piece -= 1
        tree.word[start] = piece
        release(tree, start + 1)
        start += size_of(piece)
        left -= size_of(piece)
    return slab


@kernel_part
def release(tree: Tree, slab: int) -> None:
    """Let *slab* be used again."""
    slab_class = tree.word[slab - 1]
    tree.word[slab] = tree.free[slab_class]
    tree.free[slab_class] = slab
    tree.state[TOP_CLASS] = max(tree.state[TOP_CLASS], slab_class)


@kernel_inline
def copy_words(tree: Tree, source: int, target: int, words: int) -> None:
    """Copy *words* words; the two do not overlap, or *target* comes first."""
    taken, given = tree.word[source : source + words], tree.word[target : target + words]
    for word in range(words):
        given[word] = taken[word]
