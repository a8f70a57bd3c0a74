"""The scan: every alternative is looked at for every event, 512 at a time.

    filters    the attributes that most alternatives bound, each cut into cells at quantiles;
               and terms, cut into buckets by their hash
    block      512 alternatives
      line     one bit each, a cache line: who may want an event of this cell, or with such a term
      member, signature   per slot: which alternative it is, what it needs
    event      → a line per filter, the most selective first, intersected until nobody is left
               → the signatures of those left → the exact verifier

Alternatives are in the order of their rows, and no event passes a block by: no workload is bad
for it, none is very good. It is the anchor of every comparison.
"""

from stentor.index.scan.index import Scan

__all__ = ["Scan"]
