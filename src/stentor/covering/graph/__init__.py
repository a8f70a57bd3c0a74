"""Relation graphs: what covers what, what is forwarded, what is passive (paper: III).

contract    the one interface
edges       G_k as arrays
commands    subscriptions and unsubscriptions on them, compiled
g_k         G_k over subscriptions of the whole language
poset       graphs of all coverings: the strict poset
"""
