"""Which subscription makes which redundant.

    covers       whether one subscription covers another: the definition, and why
    implies/     when one predicate implies another, a file for each kind; compiled over columns
    trie/        cov_k for the whole language, over columns: a trie of tokens
    kd_tree/     which points dominate a point: the groups of the trie
    graph/       relation graphs: G_k and the strict poset; what is forwarded, what is passive
    relations    the graph of subscriptions with ids: what a broker forwards (policy covering)
    subsumption  whether several subscriptions together cover one
    merging      two subscriptions as one
    indexed      covering, subsumption and merging over an index of subscriptions (MICS)

Paper: Indexing for Subscription Covering in Publish-Subscribe Systems (docs/papers/covering.md).
"""
