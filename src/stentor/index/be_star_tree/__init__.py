"""The BE*-Tree: weighted Boolean expressions over thousands of dimensions, and the best of them.

M. Sadoghi, H.-A. Jacobsen: Relevance Matters: Capitalizing on Less. Top-k Matching in
Publish/Subscribe. ICDE 2012.

    root c-node ─ leaf: what has no attribute in common with many others
      └ p-directory: p-node "price"   p-node "rooms" …        an attribute each (partitioning)
           └ c-directory:  [ 3 ─────────── 900 ]              intervals of its values (clustering)
                            left [3─200]  overlap [150─400]  right [390─900]
                            each with a leaf, and a p-directory of its own when that overflows

An alternative stands in one leaf as a record: its interval on each attribute, its weights. An
event walks down where its values meet the hulls; what meets all boxes of a record matches. Every
node knows the most that anything beneath it can score, which is how the k best are found without
the others.
"""

from stentor.index.be_star_tree.index import BEStarTree

__all__ = ["BEStarTree"]
