"""Relation graphs: who covers whom, what is forwarded, what is passive (paper: III).

contract    the one interface
edges       G_k as arrays; edge_table, what its forms for points and expressions share
points      G_k over points, by the kernel in commands
whole       G* and the strict poset
"""
