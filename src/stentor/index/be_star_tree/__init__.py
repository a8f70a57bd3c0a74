"""The BE*-Tree: weighted Boolean expressions over thousands of dimensions, and the k best of them.

M. Sadoghi, H.-A. Jacobsen: Relevance Matters: Capitalizing on Less. Top-k Matching in
Publish/Subscribe. ICDE 2012.

    root c-node ─ leaf: what has no attribute in common with many others
      └ p-directory: p-node "price"   p-node "rooms" …        an attribute each (partitioning)
           └ c-directory:  [ 3 ─────────── 900 ]              intervals of its values (clustering)
                            left [3─200]  overlap [150─400]  right [390─900]
                            each with a leaf, and a p-directory of its own when that overflows

An alternative is a record in one leaf: its interval on each attribute, its weights. An event visits
the nodes whose hulls its values meet; records all of whose boxes it meets match or are candidates.
Every node has an upper bound of the scores beneath it, so that the k best are found without the
others.
"""

from stentor.index.be_star_tree.index import BEStarTree

__all__ = ["BEStarTree"]
