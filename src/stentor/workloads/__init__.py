"""Seeded generators of subscriptions and events: a city's afternoon, and the papers' recipes.

The same parameters give the same workload in every process (of one NumPy version).
"""
