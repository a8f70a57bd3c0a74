"""Lists by the rarest key: for alternatives that need a word, a whole string or an equal number.

    key       the rarest that an alternative needs ─▶ list; its other keys are bits of a signature
    list      entries by second-rarest key, then along a Hilbert curve through two axes
    granule   8 entries: low and high cells along both axes (one cache line), signatures,
              alternatives; a long list has a tree of granules above it, a lane for each below
    record    what the granule leaves open: codes of other keys, ranges along other axes
    event     → its keys, confirmed once on their bytes → their lists → lanes that are met
              → covered where cells and keys decide everything, else candidates

A cell is exact where every bound of its axis is a cut; elsewhere an event that shares a cell with a
bound is a candidate only.
"""

from stentor.index.packed.lists.home import Lists

__all__ = ["Lists"]
