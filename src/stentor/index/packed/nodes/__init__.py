"""Nodes: alternatives that have nothing rare but an attribute, in lanes of 32.

    root of an attribute ─▶ inner nodes: hulls of what most entries bound ─▶ leaves

    leaf   slot   × lanes   which slot of the event's table each predicate asks about
           weight × lanes   as a share of the attribute's greatest, in 255ths, rounded up
           low, high × lanes   cells, in the frame of the dictionary
    dictionary   up to 31 slots: an axis, the cell that it begins with, and a shift

The event is a table of one byte for each slot of the dictionary. Each lane looks its own slots up,
all 32 by one permutation of bytes. Where the frames have a byte for each cell, and the cells are
exact, meeting the bounds is the proof. `top.py` finds the best by weights in the leaves themselves.
"""

from stentor.index.packed.nodes.home import Nodes

__all__ = ["Nodes"]
