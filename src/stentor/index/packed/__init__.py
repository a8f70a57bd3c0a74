"""Packed: Stentor's own index."""
