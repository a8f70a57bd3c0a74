"""Seeded generators of subscriptions and events: the papers' recipes, and real data.

The same parameters give the same workload in every process (of one NumPy version).
"""
