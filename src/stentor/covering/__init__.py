"""Which subscription makes which redundant.

    meaning/    whether one expression covers another: the definition
    graph/      relation graphs G*, G_k and the strict poset: who is forwarded, who is passive
    dominance/  indexes for cov_k over points: k-d tree, Z-curve, scans
    mixed/      cov_k for the whole language, over columns
    relations   subscriptions by id: what a broker asks before it forwards one

Paper: Indexing for Subscription Covering in Publish-Subscribe Systems (docs/papers/covering.md).
"""
