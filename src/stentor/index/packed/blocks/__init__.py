"""Blocks: alternatives that have nothing rare, 512 to a block, ordered by where they are.

    tree     8-ary, of boxes: one compare for eight children; heads of codes where they exclude
    block    512 slots
      line   one bit each, a cache line: who may want an event of this cell (cut at quantiles)
      record one cache line each: codes of bounds, the alternative, flags, a box
    event    → codes and lines → all events of a tile down the tree together
             → lines of a block intersected → records of those left → covered or candidate

A record compares codes of one byte and boxes of single precision. Where it is strictly inside all
of them the match is proved (covered); on a border the verifier has the last word.
"""

from stentor.index.packed.blocks.home import Blocks
from stentor.index.packed.blocks.live import LiveBlocks

__all__ = ["Blocks", "LiveBlocks"]
